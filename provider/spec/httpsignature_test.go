package spec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	josekit "github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/provider/spec/jose"
)

// shopURL is what the sender of the tests calls.
const shopURL = "https://shop.example/in?tenant=1"

// httpSigned describes a sender that signs in that way.
func httpSigned(v Verify) Spec {
	v.Kind = HTTPSignature
	return Spec{Name: "acme", Secret: "a key", Verify: []Verify{v}, Event: Extract{Key: [][]Value{{"json:$.id"}}}}
}

// enough is what a signature has to cover of [shopURL].
var enough = []string{"@method", "@target-uri", "content-digest"}

// atNow are the parameters of a signature that says nothing but when it was made.
var atNow = httpsig.Params{Created: now.Unix()}

// signedBy returns a request with a signature that covers those components.
func signedBy(t testing.TB, sign func(base []byte) []byte, covered []string, p httpsig.Params) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: http.MethodPost, URL: shopURL, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"id":"1"}`), Now: now}
	req.Header.Set(httpsig.DigestHeader, httpsig.Digest(req.Body))
	req.Header.Set("Idempotency-Key", "i1")
	s, err := httpsig.New("a", covered, p)
	if err != nil {
		t.Fatal(err)
	}
	base, err := s.Base(&httpsig.Request{Method: req.Method, URL: req.URL, Header: req.Header})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(httpsig.InputHeader, s.Input())
	req.Header.Set(httpsig.SignatureHeader, s.Field(sign(base)))
	return req
}

func sharing(base []byte) []byte { return httpsig.MAC([]byte(sharedSecret), base) }

func hmacProvider(t testing.TB, more ...func(*Verify)) *Provider {
	v := Verify{Algorithms: []string{"hmac-sha256"}}
	for _, change := range more {
		change(&v)
	}
	return build1(t, httpSigned(v), Settings{URL: shopURL, Secrets: Secrets(sharedSecret)})
}

// TestHTTPSignaturesCoverEnough: a good signature that leaves out the method, the URL, the body or a header that is asked
// for is refused.
func TestHTTPSignaturesCoverEnough(t *testing.T) {
	p := hmacProvider(t, func(v *Verify) { v.Sign = []Value{"header:Idempotency-Key"} })
	const key = "idempotency-key"
	for _, c := range []struct{ covered, want string }{
		{"@method @target-uri content-digest " + key, ""},
		{"@method @authority @request-target content-digest " + key, ""},
		{"@method @authority @path @query content-digest " + key + " content-type", ""},
		{"@target-uri content-digest " + key, "@method"},
		{"@method content-digest " + key, "@target-uri"},
		{"@method @path @query content-digest " + key, "@target-uri, or @authority"},
		{"@method @authority @query content-digest " + key, "@target-uri, or @path"},
		{"@method @authority @path content-digest " + key, "@target-uri, or @query"},
		{"@method @target-uri " + key, "content-digest"},
		{"@method @target-uri content-digest", key},
	} {
		d, err := p.Open(signedBy(t, sharing, strings.Fields(c.covered), atNow))
		if c.want == "" && (err != nil || !d.Events[0].KeySigned || d.Proof.Covers != string(CoversBody)) {
			t.Errorf("%s: %v", c.covered, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), "does not cover "+c.want)) {
			t.Errorf("%s: %v; want %s", c.covered, err, c.want)
		}
	}
}

// TestHTTPSignaturesBindWhatTheyCover changes each part of a request.
func TestHTTPSignaturesBindWhatTheyCover(t *testing.T) {
	p := hmacProvider(t)
	for name, c := range map[string]struct {
		change func(*hookonce.Request)
		reason string
	}{
		"nothing":             {func(*hookonce.Request) {}, ""},
		"what is not covered": {func(r *hookonce.Request) { r.Header.Set("Idempotency-Key", "i2") }, ""},
		"the query":           {func(r *hookonce.Request) { r.URL += "&tenant=2" }, hookonce.ReasonSignatureMismatch},
		"another query":       {func(r *hookonce.Request) { r.URL = strings.Replace(r.URL, "1", "2", 1) }, hookonce.ReasonSignatureMismatch},
		"the body":            {func(r *hookonce.Request) { r.Body = []byte(`{"id":"2"}`) }, hookonce.ReasonSignatureMismatch},
		"body and digest": {func(r *hookonce.Request) {
			r.Body = []byte(`{"id":"2"}`)
			r.Header.Set(httpsig.DigestHeader, httpsig.Digest(r.Body))
		}, hookonce.ReasonSignatureMismatch},
		"no digest":    {func(r *hookonce.Request) { r.Header.Del(httpsig.DigestHeader) }, hookonce.ReasonSignatureMalformed},
		"no signature": {func(r *hookonce.Request) { r.Header.Del(httpsig.SignatureHeader) }, hookonce.ReasonSignatureMissing},
		"no input":     {func(r *hookonce.Request) { r.Header.Del(httpsig.InputHeader) }, hookonce.ReasonSignatureMissing},
		"a later time": {func(r *hookonce.Request) {
			r.Header.Set(httpsig.InputHeader, strings.Replace(r.Header.Get(httpsig.InputHeader), "created=", "created=1", 1))
		}, hookonce.ReasonSignatureMismatch},
		"a stranger's beside it": {func(r *hookonce.Request) {
			r.Header.Set(httpsig.InputHeader, r.Header.Get(httpsig.InputHeader)+`, z=("@method");created=1`)
			r.Header.Set(httpsig.SignatureHeader, r.Header.Get(httpsig.SignatureHeader)+`, z=:AAAA:`)
		}, ""},
	} {
		req := signedBy(t, sharing, enough, atNow)
		c.change(req)
		if c.reason != "" {
			t.Run(name, func(t *testing.T) { rejected(t, p, req, c.reason) })
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHTTPSignaturesHaveParameters(t *testing.T) {
	p := hmacProvider(t, func(v *Verify) { v.Claims = map[string]string{"tag": "acme/1", "keyid": "k1"} })
	if _, err := p.Open(signedBy(t, sharing, enough, httpsig.Params{Created: now.Unix(), Tag: "acme/1", KeyID: "k1", Alg: "hmac-sha256"})); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		params httpsig.Params
		reason string
	}{
		"another tag":       {httpsig.Params{Created: now.Unix(), KeyID: "k1", Tag: "acme/2"}, hookonce.ReasonSignatureMalformed},
		"no keyid":          {httpsig.Params{Created: now.Unix(), Tag: "acme/1"}, hookonce.ReasonSignatureMalformed},
		"another algorithm": {httpsig.Params{Created: now.Unix(), KeyID: "k1", Tag: "acme/1", Alg: "ed25519"}, hookonce.ReasonSignatureMismatch},
		"too old":           {httpsig.Params{Created: now.Unix() - 301, KeyID: "k1", Tag: "acme/1"}, hookonce.ReasonTimestampOld},
		"of the future":     {httpsig.Params{Created: now.Unix() + 301, KeyID: "k1", Tag: "acme/1"}, hookonce.ReasonTimestampFuture},
		"run out":           {httpsig.Params{Created: now.Unix() - 9, Expires: now.Unix() - 1, KeyID: "k1", Tag: "acme/1"}, hookonce.ReasonTimestampOld},
	} {
		t.Run(name, func(t *testing.T) {
			req := signedBy(t, sharing, enough, c.params)
			rejected(t, p, req, c.reason)
			if c.reason == hookonce.ReasonTimestampOld || c.reason == hookonce.ReasonTimestampFuture {
				req.Body = []byte(`{"id":"2"}`) // with which its age is no excuse
				rejected(t, p, req, hookonce.ReasonSignatureMismatch)
			}
		})
	}
}

// signText signs with the text of a Signature-Input, whatever that says.
func signText(t testing.TB, params string) *hookonce.Request {
	t.Helper()
	req := signedBy(t, sharing, enough, atNow)
	in := "a=" + params
	found, err := httpsig.Parse([]string{in}, []string{"a=:AAAA:"})
	if err != nil {
		t.Fatal(err)
	}
	base, err := found[0].Base(&httpsig.Request{Method: req.Method, URL: req.URL, Header: req.Header})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(httpsig.InputHeader, in)
	req.Header.Set(httpsig.SignatureHeader, found[0].Field(sharing(base)))
	return req
}

func TestHTTPSignaturesRunOut(t *testing.T) {
	covered := `("@method" "@target-uri" "content-digest")`
	p := hmacProvider(t)
	untimed := hmacProvider(t, func(v *Verify) { v.Time = &Timestamp{In: "claim:created"} })
	created := ";created=" + Seconds.format(now)
	if _, err := p.Open(signText(t, covered+created+";expires="+Seconds.format(now))); err != nil {
		t.Error(err)
	}
	rejected(t, p, signText(t, covered+created+";expires="+Seconds.format(now.Add(-1e9))), hookonce.ReasonTimestampOld)
	rejected(t, p, signText(t, covered), hookonce.ReasonTimestampMissing)
	if _, err := untimed.Open(signText(t, covered)); err != nil {
		t.Error(err)
	}
}

// TestHTTPSignaturesDoNotChooseTheirVerification: a public key is no shared secret, and each key has its algorithm.
func TestHTTPSignaturesDoNotChooseTheirVerification(t *testing.T) {
	edPublic, edPrivate, _ := ed25519.GenerateKey(rand.Reader)
	ecPrivate, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signEd := func(base []byte) []byte { return ed25519.Sign(edPrivate, base) }
	signEC := func(base []byte) []byte {
		sum := sha256.Sum256(base)
		r, s, err := ecdsa.Sign(rand.Reader, ecPrivate, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	text := func(key crypto.PublicKey) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	s := httpSigned(Verify{Algorithms: []string{"ed25519", "ecdsa-p256-sha256"}})
	p := build1(t, s, Settings{URL: shopURL, Secrets: Secrets(text(edPublic), text(ecPrivate.Public()))})
	for name, sign := range map[string]func([]byte) []byte{"ed25519": signEd, "ecdsa": signEC} {
		if d, err := p.Open(signedBy(t, sign, enough, atNow)); err != nil || d.Proof.Secret != map[string]int{"ed25519": 1, "ecdsa": 2}[name] {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := func(base []byte) []byte { return httpsig.MAC([]byte(text(edPublic)), base) }
	rejected(t, p, signedBy(t, forged, enough, atNow), hookonce.ReasonSignatureMismatch)
	rejected(t, p, signedBy(t, forged, enough, httpsig.Params{Created: now.Unix(), Alg: "hmac-sha256"}), hookonce.ReasonSignatureMismatch)
	if err := p.Sign(signedBy(t, signEd, enough, atNow)); err == nil {
		t.Error("it signs with a public key")
	}

	set, err := json.Marshal(josekit.JSONWebKeySet{Keys: []josekit.JSONWebKey{{Key: edPublic, KeyID: "one"}, {Key: ecPrivate.Public(), KeyID: "two"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Verify[0].Key, s.Verify[0].Tokens = KeyJWK, jose.Tokens{}
	p = build1(t, s, Settings{URL: shopURL, Secrets: Secrets(string(set))})
	if _, err := p.Open(signedBy(t, signEC, enough, httpsig.Params{Created: now.Unix(), KeyID: "two"})); err != nil {
		t.Error(err)
	}
	rejected(t, p, signedBy(t, signEC, enough, httpsig.Params{Created: now.Unix(), KeyID: "one"}), hookonce.ReasonSignatureMismatch)

	private, _ := x509.MarshalPKCS8PrivateKey(edPrivate)
	for _, c := range []struct {
		algorithm, secret, want string
	}{
		{"hmac-sha256", text(edPublic), "no secret has the right form"},
		{"ed25519", "a text", "no secret has the right form"},
		{"ed25519", text(ecPrivate.Public()), "for none of [ed25519]"},
		{"ed25519", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), "is a private key"},
	} {
		_, err := New(httpSigned(Verify{Algorithms: []string{c.algorithm}}), Settings{Secrets: Secrets(c.secret)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.algorithm, err, c.want)
		}
	}
}

func TestHTTPSignaturesAreChecked(t *testing.T) {
	mac := []string{"hmac-sha256"}
	for want, v := range map[string]Verify{
		"algorithms: is empty":                {},
		`algorithms: there is no "none"`:      {Algorithms: []string{"none"}},
		"algorithms: are of different":        {Algorithms: []string{"hmac-sha256", "ed25519"}},
		"signature: is always":                {Algorithms: mac, Signature: Signature{In: "header:X-Signature"}},
		"time: of an http_signature":          {Algorithms: mac, Time: &Timestamp{In: "header:X-Time"}},
		`sign: has "body"`:                    {Algorithms: mac, Sign: []Value{"body"}},
		`claims: has "nonce"`:                 {Algorithms: mac, Claims: map[string]string{"nonce": "1"}},
		"covers: says nothing":                {Algorithms: mac, Covers: CoversNothing},
		"id, per_item, body_hash, url_hash, ": {Algorithms: mac, ID: "header:X-Id"},
	} {
		if err := httpSigned(v).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestHTTPSignaturesAreSigned: what is signed here is verified here, and is made anew for a receiver elsewhere.
func TestHTTPSignaturesAreSigned(t *testing.T) {
	p := hmacProvider(t, func(v *Verify) {
		v.Sign, v.Claims = []Value{"header:Idempotency-Key"}, map[string]string{"tag": "acme/1"}
	})
	req := &hookonce.Request{URL: shopURL, Header: http.Header{"Idempotency-Key": {"i1"}}, Body: []byte(`{"id":"1"}`), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Resigner(Receiver{URL: "https://app.example/hooks"})
	if err != nil {
		t.Fatal(err)
	}
	req.URL, req.Now = "https://app.example/hooks", now.Add(86400e9)
	if err := r.Sign(req, d.Proof.Vouched); err != nil {
		t.Fatal(err)
	}
	app := build1(t, p.Spec(), Settings{URL: req.URL, Secrets: Secrets(sharedSecret)})
	if _, err := app.Open(req); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"Signature", "Signature-Input", "Content-Digest", "Idempotency-Key"} {
		if !r.Carries(name) {
			t.Errorf("%s is not carried", name)
		}
	}
}
