package spec

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// httpMatcher matches HTTP message signatures (RFC 9421). Whatever else a signature covers, it has to cover the method,
// the URL and the digest of the body.
type httpMatcher struct {
	algorithms []httpsig.Algorithm
	params     map[string]string // that a signature must have
	keyed[httpKey]
}

// httpKey is a key with its id, or a set of which the signature's keyid selects one. An id that is empty fits all.
type httpKey []webKey

func newHTTPMatcher(spec Verify, own Settings) (matcher, error) {
	m := &httpMatcher{params: spec.Claims}
	for _, name := range spec.Algorithms {
		m.algorithms = append(m.algorithms, httpsig.Algorithm(name))
	}
	var err error
	m.keyed, err = newKeyed(own.Secrets, func(text string) (httpKey, error) {
		if spec.sharesSecret() {
			return parseShared(spec.Key, text)
		}
		if own.AsSender && httpsig.IsPEM(text) {
			if key, err := httpsig.PrivateKey(text); err == nil {
				return m.only(key)
			}
		}
		return m.parsePublic(spec, text)
	})
	return m, err
}

// parseShared reads a shared secret. A public key is none: everybody has it.
func parseShared(form KeyForm, text string) (httpKey, error) {
	if httpsig.IsKey(text) {
		return nil, errOtherForm
	}
	key, err := form.decode(text)
	return httpKey{{key: key}}, err
}

// parsePublic reads a public key, or a set of them, of which those for other algorithms are left out.
func (m *httpMatcher) parsePublic(spec Verify, text string) (httpKey, error) {
	if spec.Key == KeyJWK {
		return m.parseSet(spec.Tokens, text)
	}
	if spec.Key == KeyPEM && !httpsig.IsKey(text) {
		return nil, errOtherForm
	}
	der, err := spec.Key.decode(text)
	if err != nil {
		return nil, err
	}
	var key any = ed25519.PublicKey(der)
	if len(der) != ed25519.PublicKeySize {
		if key, err = x509.ParsePKIXPublicKey(der); err != nil {
			return nil, noPublicKey(der)
		}
	}
	return m.only(key)
}

// only returns a key that stands alone.
func (m *httpMatcher) only(key any) (httpKey, error) {
	if !m.fits(key) {
		return nil, fmt.Errorf("is a key for none of %v (an RSA key has at least 2048 bits)", m.algorithms)
	}
	return httpKey{{key: key}}, nil
}

func (m *httpMatcher) parseSet(tokens Tokens, text string) (httpKey, error) {
	if tokens == nil {
		return nil, errors.New("is in a JSON Web Key, which needs jose.Tokens{}, of the package provider/spec/jose, in tokens")
	}
	keys, err := tokens.Keys(text)
	if err != nil {
		return nil, err
	}
	var set httpKey
	for id, key := range keys {
		if m.fits(key) {
			set = append(set, webKey{id, key})
		}
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("has no public key for any of %v", m.algorithms)
	}
	return set, nil
}

func (m *httpMatcher) fits(key any) bool {
	return slices.ContainsFunc(m.algorithms, func(a httpsig.Algorithm) bool { return a.Fits(key) })
}

func (m *httpMatcher) wellFormed(string) bool { return true }
func (m *httpMatcher) shape() string          { return "a label and a signature, as in sig1=:bm9uZQ==:" }

// match accepts a request if one of its signatures is good: made with a secret, over enough. Of those that are not it
// says why the last is not. The label is not signed, and nothing goes by it.
func (m *httpMatcher) match(v *verifier, r *reading, _ string) (int, error) {
	header := r.req.Header
	if _, err := incoming.Required(header, httpsig.InputHeader, "what the signature covers, as in sig1=(\"@method\" \"@target-uri\" \"content-digest\");created=1618884473"); err != nil {
		return 0, err
	}
	found, err := httpsig.Parse(header[httpsig.InputHeader], header[httpsig.SignatureHeader])
	if err != nil {
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%v", err)
	}
	why := incoming.Reject(hookonce.ReasonSignatureMalformed, "none of the signatures has the parameters %v", slices.Sorted(maps.Keys(m.params)))
	for i := range found {
		s := &found[i]
		if !m.meant(s) {
			continue
		}
		var n int
		if n, why = m.matchOne(v, r, s); n > 0 && why == nil {
			return n, nil
		}
	}
	return 0, why
}

// meant reports whether a signature has the parameters that are asked for.
func (m *httpMatcher) meant(s *httpsig.Signature) bool {
	for name, text := range m.params {
		if s.Texts[name] != text {
			return false
		}
	}
	return true
}

func (m *httpMatcher) matchOne(v *verifier, r *reading, s *httpsig.Signature) (int, error) {
	message := &httpsig.Request{Method: r.method, URL: r.url, Header: r.req.Header}
	base, err := s.Base(message)
	if err != nil {
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%v", err)
	}
	n := m.find(r.req.Now, func(key httpKey) bool { return m.made(s, base, key) })
	if n == 0 {
		return 0, v.mismatch(r, 1)
	}
	if err := v.enough(s, message, r.req.Body); err != nil {
		return 0, err
	}
	if s.Covers("content-digest") {
		if err := httpsig.CheckDigest(r.req.Header[httpsig.DigestHeader], r.req.Body); err != nil {
			return 0, incoming.Reject(hookonce.ReasonSignatureMismatch, "%v", err)
		}
	}
	if err := v.stated(r, s.Created); err != nil {
		return 0, err
	}
	if s.Expires != nil && r.req.Now.After(time.Unix(*s.Expires, 0)) {
		return 0, incoming.Reject(hookonce.ReasonTimestampOld, "the signature's expires is in the past")
	}
	return n, nil
}

// stated takes the time of creation for the signed time. It may be absent where no tolerance is enforced.
func (v *verifier) stated(r *reading, created *int64) error {
	switch {
	case created != nil:
		return v.believe(r, strconv.FormatInt(*created, 10))
	case v.past == 0 && v.future == 0:
		r.at = r.req.Now
		return nil
	}
	return v.believe(r, "")
}

// createdAt returns the latest of the times at which signatures of a request say that they were created, and whether one
// says so.
func createdAt(req *hookonce.Request) (at time.Time, ok bool) {
	found, err := httpsig.Parse(req.Header[httpsig.InputHeader], req.Header[httpsig.SignatureHeader])
	if err != nil {
		return at, false
	}
	for i := range found {
		if created := found[i].Created; created != nil && (!ok || time.Unix(*created, 0).After(at)) {
			at, ok = time.Unix(*created, 0).UTC(), true
		}
	}
	return at, ok
}

// made reports whether one of the keys made the signature, with an algorithm that is accepted. One that the signature
// names must be that.
func (m *httpMatcher) made(s *httpsig.Signature, base []byte, keys httpKey) bool {
	said, says := s.Texts["alg"]
	for _, key := range keys {
		if key.id != "" && s.Texts["keyid"] != key.id {
			continue
		}
		for _, a := range m.algorithms {
			if (!says || said == string(a)) && a.Verify(key.key, base, s.Value) {
				return true
			}
		}
	}
	return false
}

// enough refuses a signature that leaves out something that could be changed then.
func (v *verifier) enough(s *httpsig.Signature, of *httpsig.Request, body []byte) error {
	names := make([]string, len(v.sign))
	for i := range v.sign {
		names[i] = v.sign[i].text
	}
	missing := s.Missing(of, body, names...)
	if missing == "" {
		return nil
	}
	return incoming.Reject(hookonce.ReasonSignatureMalformed, "the signature does not cover %s, which anybody could change then; have the sender sign it", missing)
}

// httpLabel is that of signatures that are made here.
const httpLabel = "sig1"

// seal signs as a sender with the shared secret, or with the private key, does: the method, the URL, the digest of the body, its type, and the
// headers that have to be signed.
func (m *httpMatcher) seal(v *verifier, r *reading, secret int) (string, error) {
	key, err := m.pick(r.req.Now, secret)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(m.algorithms, func(a httpsig.Algorithm) bool { return a.Fits(key[0].key) })
	algorithm := m.algorithms[i] // a key that none is for was refused
	header := r.req.Header
	header[httpsig.DigestHeader] = []string{httpsig.Digest(r.req.Body)}
	covered := []string{"@method", "@target-uri", "content-digest"}
	if _, has := header["Content-Type"]; has {
		covered = append(covered, "content-type")
	}
	for i := range v.sign {
		if name := strings.ToLower(v.sign[i].text); !slices.Contains(covered, name) {
			covered = append(covered, name)
		}
	}
	s, err := httpsig.New(httpLabel, covered, httpsig.Params{
		Created: r.req.Now.Unix(), KeyID: cmp.Or(m.params["keyid"], key[0].id), Alg: string(algorithm), Tag: m.params["tag"],
	})
	if err != nil {
		return "", err
	}
	base, err := s.Base(&httpsig.Request{Method: r.method, URL: r.url, Header: header})
	if err != nil {
		return "", err
	}
	signature, err := algorithm.Sign(key[0].key, base)
	if err != nil {
		if errors.Is(err, httpsig.ErrPublic) {
			err = errors.New("it is a public key that is given, and nothing can be signed with one; give the private key that it belongs to")
		}
		return "", err
	}
	header[httpsig.InputHeader] = []string{s.Input()}
	return s.Field(signature), nil
}

// sharesSecret reports whether a signature of RFC 9421 is made with a secret that both sides have.
func (v Verify) sharesSecret() bool {
	return len(v.Algorithms) > 0 && v.Algorithms[0] == string(httpsig.HMACSHA256)
}

// checkHTTP holds an HTTP message signature to what it has.
func (v Verify) checkHTTP() error {
	switch in := (Signature{In: "header:" + httpsig.SignatureHeader}); {
	case v.Covers != CoversBody:
		return fault("covers", "says %s, but an http_signature covers the body", v.Covers)
	case v.Signature != in:
		return fault("signature", "is always in the header Signature; remove it")
	case v.ID != "" || v.PerItem || v.BodyHash != "" || v.URLHash != "" || v.Unescape != "" || v.Join != "":
		return errors.New("id, per_item, body_hash, url_hash, unescape, join: an http_signature has none of them; remove them")
	case v.Time.In != "claim:created" || v.Time.Unit != Seconds:
		return fault("time", "of an http_signature is its parameter created, in seconds, as in {in: claim:created, past: 5m, future: 5m}")
	case len(v.Algorithms) == 0:
		return fault("algorithms", "is empty; a signature must not choose how it is verified")
	}
	for _, name := range v.Algorithms {
		switch {
		case !httpsig.Algorithm(name).Known():
			return fault("algorithms", "there is no %q; use one of %v", name, httpsig.Algorithms)
		case len(v.Algorithms) > 1 && name == string(httpsig.HMACSHA256):
			return fault("algorithms", "are of different families; a public key could be taken for a shared secret")
		}
	}
	for _, text := range v.Sign {
		if part, err := parseValue(text); err != nil || part.kind != kindHeader {
			return fault("sign", "has %q; it lists the headers that have to be signed beside the method, the URL and the body, as in [header:Idempotency-Key]", text)
		}
	}
	for name := range v.Claims {
		if name != "keyid" && name != "tag" {
			return fault("claims", "has %q; a signature can be asked for its keyid and its tag", name)
		}
	}
	return nil
}

// httpHeaders are read beside the signature.
var httpHeaders = []string{http.CanonicalHeaderKey(httpsig.InputHeader), http.CanonicalHeaderKey(httpsig.DigestHeader)}
