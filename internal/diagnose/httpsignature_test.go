package diagnose_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestCausesOfHTTPSignatures: such a signature says much of itself, and so the first line does: the kind of key, its id, what is
// covered, whose digest it is, and what is left where nothing of that is wrong.
func TestCausesOfHTTPSignatures(t *testing.T) {
	testskip.Race(t)
	const address = "https://shop.example/hooks/partner?tenant=1"
	now := time.Unix(1770091506, 0).UTC()
	pair := func(a httpsig.Algorithm) httpsigtest.Pair { return httpsigtest.Of(a) }
	partner := func(change func(*spec.Verify)) spec.Spec {
		s := provider.HTTPSignatureConfig{Name: "partner"}.Spec()
		s.Verify = s.Verify[1:]
		change(&s.Verify[0])
		return s
	}
	withoutAlg := func(r *hookonce.Request) {
		in := r.Header.Get("Signature-Input")
		r.Header.Set("Signature-Input", in[:strings.Index(in, ";alg=")])
	}
	for name, c := range map[string]struct {
		signed httpsig.Algorithm // default ed25519
		given  string            // default its public key
		known  spec.Spec         // default the catalogue's
		url    string            // default what was signed
		change func(*hookonce.Request)
		word   diagnose.Word
		want   string
	}{
		"a key of another kind": {given: pair(httpsig.ECDSAP256SHA256).Public, word: diagnose.SecretKind,
			want: "the signature says that it was made with ed25519, and the key that is given is for ecdsa-p256-sha256"},
		"a shared secret": {given: httpsigtest.Secret, word: diagnose.SecretKind,
			want: "the signature says that it was made with ed25519, and a shared secret is given"},
		"a key, and the secret is shared": {signed: httpsig.HMACSHA256, given: pair(httpsig.Ed25519).Public, word: diagnose.SecretKind,
			want: "the signature says that it was made with hmac-sha256, and the key that is given is for ed25519"},
		"a kind that only the length tells": {signed: httpsig.ECDSAP384SHA384, given: pair(httpsig.RSAPSSSHA512).Public, change: withoutAlg, word: diagnose.SecretKind,
			want: "the signature has 96 bytes, as ecdsa-p384-sha384 makes it, and the key that is given is for rsa-pss-sha512 or rsa-v1_5-sha256"},
		"another keyid": {known: partner(func(v *spec.Verify) { v.Claims = map[string]string{"keyid": "k1"} }), word: diagnose.SecretKind,
			change: func(r *hookonce.Request) {
				r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), ";alg=", `;keyid="k2";alg=`, 1))
			},
			want: `the signature has the keyid "k2", and "k1" is asked for`},
		"no tag": {known: partner(func(v *spec.Verify) { v.Claims = map[string]string{"tag": "acme"} }), word: diagnose.SecretKind,
			want: `the signature has no tag, and "acme" is asked for`},
		"a header that is not covered": {known: partner(func(v *spec.Verify) { v.Sign = []spec.Value{"header:Idempotency-Key"} }), word: diagnose.SignatureContent,
			want: "the signature is right, but it does not cover idempotency-key, which anybody could change then"},
		"a digest of another body": {change: func(r *hookonce.Request) { r.Body = []byte(strings.Replace(string(r.Body), "1", "2", 1)) }, word: diagnose.BodyCut,
			want: "the signature is right, but the body is not the one that the signed Content-Digest is of: it was changed on the way"},
		"the URL of the proxy": {url: "http://10.0.0.7:8080/hooks/partner?tenant=1", word: diagnose.URLHost,
			want: "the URL is one that only this network knows, and the sender called another one"},
		"a proxy that ends TLS": {url: "http://shop.example/hooks/partner?tenant=1", word: diagnose.URLScheme,
			want: "the secret is right, but the URL begins with http:, and the signed one with https:"},
		"a header that is signed is gone": {change: func(r *hookonce.Request) { r.Header.Del("Content-Type") }, word: diagnose.HeaderMissing,
			want: "the header content-type, which the signature covers, is absent"},
		"a header that is signed was changed": {change: func(r *hookonce.Request) { r.Header.Set("Content-Type", "text/plain") }, word: diagnose.OtherSecret,
			want: "the key is another one than the sender signed with, or the URL or one of the headers that it signed (content-type) is another one; the body is the sender's, by its Content-Digest"},
		"nothing fits": {change: func(r *hookonce.Request) {
			r.Body = []byte(`{"id": "other"}`)
			r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), "created=1", "created=2", 1))
		}, word: diagnose.OtherSecret,
			want: "the body is not the one that Content-Digest is of, and the signature does not fit either: the key, the URL or a header that it covers is another one"},
		"an hour ago": {change: func(r *hookonce.Request) { r.Now = r.Now.Add(time.Hour + 20*time.Minute) }, word: diagnose.TimeOld,
			want: "the signature is right, but it was made 1 hour and 20 minutes before the time of arrival, 2026-02-03T05:25:06Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.signed == "" {
				c.signed = httpsig.Ed25519
			}
			if c.given == "" {
				c.given = pair(c.signed).Public
			}
			if c.known.Name == "" {
				c.known, _ = provider.Lookup("http-signature")
			}
			if c.url == "" {
				c.url = address
			}
			sender := provider.HTTPSignature(provider.HTTPSignatureConfig{Secrets: []string{pair(c.signed).Private}, URL: address, AsSender: true})
			header, body := sender.Spec().Sample(spec.Sample{ID: "evt_1", Time: now})
			req := &hookonce.Request{Method: http.MethodPost, URL: address, Header: header, Body: body, Now: now}
			if err := sender.Sign(req); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(req)
			}
			req.URL = c.url
			own := spec.Settings{Secrets: spec.Secrets(c.given), URL: c.url}
			p, err := spec.New(c.known, own)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Open(req)
			got := diagnose.Capture{Spec: c.known, Settings: own, Provider: p, Request: req, Arrived: true}.Why(err)
			if got.Text != c.want || got.Word != c.word || got.Mend == "" {
				t.Errorf("%s: %q; do: %s\nwant %s: %q", got.Word, got.Text, got.Mend, c.word, c.want)
			}
		})
	}
}
