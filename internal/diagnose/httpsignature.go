package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/provider/spec"
)

// httpSignature says in what an HTTP message signature and what it is verified with differ: such a signature says much of
// itself.
func (c Capture) httpSignature() (Cause, bool) {
	i := slices.IndexFunc(c.Spec.Verify, func(v spec.Verify) bool { return v.Kind == spec.HTTPSignature })
	if i < 0 {
		return Cause{}, false
	}
	header := c.Request.Header
	found, err := httpsig.Parse(header[httpsig.InputHeader], header[httpsig.SignatureHeader])
	if err != nil || len(found) == 0 {
		return Cause{}, false
	}
	s, cause := meantSignature(found, c.Spec.Verify[i].Claims)
	if s == nil {
		return cause, true
	}
	keys := c.httpKeys()
	message := &httpsig.Request{Method: c.Request.Method, URL: signedURL(c.Settings.URL, c.Request.URL), Header: header}
	base, err := s.Base(message)
	switch {
	case err != nil:
		return Cause{Word: HeaderMissing, Text: err.Error(), Mend: "give the request as the sender made it, with every header that is signed; if it did not arrive, look for a proxy that drops it"}, true
	case slices.ContainsFunc(keys, func(k httpsig.Key) bool { return k.Verify(base, s.Value) }):
		return c.rightButFor(s, message, c.Spec.Verify[i])
	}
	if cause, ok := otherKind(s, keys); ok {
		return cause, true
	}
	return Cause{}, false
}

// meantSignature returns the signature that is for the endpoint, or says why none is.
func meantSignature(found []httpsig.Signature, claims map[string]string) (*httpsig.Signature, Cause) {
	var cause Cause
	for i := range found {
		cause = Cause{}
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			said, says := found[i].Texts[name]
			if says && said == claims[name] {
				continue
			}
			cause = Cause{Word: SecretKind, Text: fmt.Sprintf("the signature has the %s %q, and %q is asked for", name, shown(said), claims[name]),
				Mend: "compare both with the sender's page: where it has replaced its key, give the new one, and its keyid"}
			if !says {
				cause.Text = fmt.Sprintf("the signature has no %s, and %q is asked for", name, claims[name])
			}
		}
		if cause.Word == "" {
			return &found[i], cause
		}
	}
	return nil, cause
}

// httpKeys are the secrets that are keys of HTTP message signatures, RSA keys for both of their algorithms.
func (c Capture) httpKeys() (keys []httpsig.Key) {
	for _, s := range c.Settings.Secrets {
		key, err := httpsig.VerifyingKey("", s.Text)
		if err != nil {
			continue
		}
		if keys = append(keys, key); key.Algorithm == httpsig.RSAPSSSHA512 {
			key.Algorithm = httpsig.RSAv15SHA256
			keys = append(keys, key)
		}
	}
	return keys
}

// rightButFor says why a signature that fits is refused.
func (c Capture) rightButFor(s *httpsig.Signature, message *httpsig.Request, v spec.Verify) (Cause, bool) {
	var also []string
	for _, text := range v.Sign {
		also = append(also, strings.TrimPrefix(string(text), "header:"))
	}
	if missing := s.Missing(message, c.Request.Body, also...); missing != "" {
		return Cause{Word: SignatureContent, Text: "the signature is right, but it does not cover " + missing + ", which anybody could change then", Mend: "have the sender sign it as well"}, true
	}
	if err := httpsig.CheckDigest(c.Request.Header[httpsig.DigestHeader], c.Request.Body); err != nil && s.Covers("content-digest") {
		return Cause{Word: BodyCut, Text: "the signature is right, but the body is not the one that the signed Content-Digest is of: it was changed on the way",
			Mend: "capture it before anything parses it, all of it and nothing else"}, true
	}
	return Cause{}, false
}

// otherKind finds a signature that was made with another kind of key than all that are given.
func otherKind(s *httpsig.Signature, keys []httpsig.Key) (Cause, bool) {
	if len(keys) == 0 {
		return Cause{}, false
	}
	said, says := s.Texts["alg"]
	sort := "the signature says that it was made with " + shown(said)
	fits := func(a httpsig.Algorithm) bool { return string(a) == said }
	if !says {
		made := ofLength(len(s.Value))
		if len(made) == 0 {
			return Cause{}, false
		}
		sort = fmt.Sprintf("the signature has %s, as %s makes it", plural(int64(len(s.Value)), "byte"), alternatives(made))
		fits = func(a httpsig.Algorithm) bool { return slices.Contains(made, a) }
	}
	var given []httpsig.Algorithm
	for _, k := range keys {
		if fits(k.Algorithm) {
			return Cause{}, false
		}
		if !slices.Contains(given, k.Algorithm) {
			given = append(given, k.Algorithm)
		}
	}
	what, mend := "the key that is given is for "+alternatives(given), "give the sender's public key for that, in PEM"
	if given[0] == httpsig.HMACSHA256 {
		what = "a shared secret is given"
	} else if fits(httpsig.HMACSHA256) {
		mend = "give the secret that is shared with the sender"
	}
	return Cause{Word: SecretKind, Text: sort + ", and " + what, Mend: mend}, true
}

// ofLength returns the algorithms whose signatures have that length in bytes.
func ofLength(n int) []httpsig.Algorithm {
	switch {
	case n == 32:
		return []httpsig.Algorithm{httpsig.HMACSHA256}
	case n == 64:
		return []httpsig.Algorithm{httpsig.Ed25519, httpsig.ECDSAP256SHA256}
	case n == 96:
		return []httpsig.Algorithm{httpsig.ECDSAP384SHA384}
	case n >= 256:
		return []httpsig.Algorithm{httpsig.RSAPSSSHA512, httpsig.RSAv15SHA256}
	}
	return nil
}

// alternatives joins algorithms for people.
func alternatives(all []httpsig.Algorithm) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = string(a)
	}
	return strings.Join(texts, " or ")
}

// otherHTTP says what is left where nothing fits an HTTP message signature: its Content-Digest tells whether the body is the
// sender's.
func (c Capture) otherHTTP(cause *Cause) {
	if !slices.ContainsFunc(c.Spec.Verify, func(v spec.Verify) bool { return v.Kind == spec.HTTPSignature }) {
		return
	}
	found, err := httpsig.Parse(c.Request.Header[httpsig.InputHeader], c.Request.Header[httpsig.SignatureHeader])
	if err != nil || len(found) == 0 || !found[0].Covers("content-digest") {
		return
	}
	if httpsig.CheckDigest(c.Request.Header[httpsig.DigestHeader], c.Request.Body) != nil {
		cause.Text = "the body is not the one that Content-Digest is of, and the signature does not fit either: the key, the URL or a header that it covers is another one"
		return
	}
	var headers []string
	for _, covered := range found[0].Covered {
		if !strings.HasPrefix(covered.Name, "@") && covered.Name != "content-digest" {
			headers = append(headers, shown(covered.Name))
		}
	}
	cause.Text = "the key is another one than the sender signed with, or the URL is not the one that it called"
	if len(headers) > 0 {
		cause.Text = "the key is another one than the sender signed with, or the URL or one of the headers that it signed (" + strings.Join(headers, ", ") + ") is another one"
	}
	cause.Text += "; the body is the sender's, by its Content-Digest"
	cause.Mend = "compare the key with the sender's page, and the keyid with that of the signature"
	if id := found[0].Texts["keyid"]; id != "" {
		cause.Mend += fmt.Sprintf(", %q", shown(id))
	}
	cause.Mend += "; and the URL with the one that is registered with the sender, to the last character"
}
