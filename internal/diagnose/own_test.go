package diagnose_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/provider/spec"
)

// Somebody who describes a sender is told what the description has wrong.
func TestOwnSpecification(t *testing.T) {
	timed := func(v spec.Verify) spec.Verify {
		v.Signature = spec.Signature{In: "header:X-Acme-Signature", Split: ",", Prefix: "v1="}
		v.Time = &spec.Timestamp{In: "part:t=", Past: 5 * 60e9, Future: 5 * 60e9}
		v.Sign = []spec.Value{"ts", "const:.", "body"}
		return v
	}
	plain := func(v spec.Verify) spec.Verify {
		v.Signature = spec.Signature{In: "header:X-Acme-Signature"}
		v.Sign = []spec.Value{"body"}
		return v
	}
	untimed := func(v spec.Verify) spec.Verify {
		v = timed(v)
		v.Time, v.Sign = nil, []spec.Value{"body"}
		return v
	}
	milli := timed(spec.Verify{})
	milli.Time = &spec.Timestamp{In: "part:t=", Unit: spec.Millis, Past: 5 * 60e9, Future: 5 * 60e9}
	for _, c := range []struct {
		name          string
		sends, stands spec.Verify
		secret        string
		word          diagnose.Word
		want, mend    string
	}{
		{"hash", plain(spec.Verify{Hash: spec.SHA512}), plain(spec.Verify{}), "", diagnose.SignatureHash, "the secret is right, but the signature in the header X-Acme-Signature is made with SHA-512, and one with SHA-256 is wanted", "hash: sha512"},
		{"encoding", plain(spec.Verify{Encoding: spec.Base64}), plain(spec.Verify{}), "", diagnose.SignatureEncoding, "the secret is right, but the signature is written in base64, and one in hexadecimal is wanted", "encoding: base64"},
		{"key", plain(spec.Verify{Key: spec.KeyHex}), plain(spec.Verify{}), strings.Repeat("0f", 32), diagnose.SecretEncoding, "the secret was encoded in hexadecimal once more", ""},
		{"no time", timed(spec.Verify{}), untimed(spec.Verify{}), "", diagnose.SignatureContent, "the secret is right, but the signature covers the time, a dot and the body, and the specification says something else", `write sign: ["ts", "const:.", "body"] and time: {in: part:t=}`},
		{"a time too much", untimed(spec.Verify{}), timed(spec.Verify{}), "", diagnose.SignatureContent, "the secret is right, but the signature covers the body alone, and the specification says something else", `write sign: ["body"]`},
		{"unit", milli, timed(spec.Verify{}), "", diagnose.TimeUnit, "the signature is right, but its time is in milliseconds, and another unit is wanted", "unit: ms"},
		{"content", func() spec.Verify { v := plain(spec.Verify{}); v.Sign = []spec.Value{"url", "body"}; return v }(), plain(spec.Verify{}), "", diagnose.SignatureContent, "the secret is right, but the signature covers the URL and the body, and the specification says something else", `write sign: ["url", "body"]`},
	} {
		secret := c.secret
		if secret == "" {
			secret = secretOf("acme")
		}
		settings := spec.Settings{Secrets: spec.Secrets(secret)}
		sender, err := spec.New(spec.Spec{Name: "acme", Verify: []spec.Verify{c.sends}}, settings)
		if err != nil {
			t.Fatal(err)
		}
		req := &hookonce.Request{Method: http.MethodPost, URL: address, Header: http.Header{}, Body: []byte(`{"id":"1"}`), Now: now}
		if err := sender.Sign(req); err != nil {
			t.Fatal(err)
		}
		got := why(t, &diagnose.Capture{Spec: spec.Spec{Name: "acme", Verify: []spec.Verify{c.stands}}, Settings: settings, Request: req, Arrived: true})
		if got.Word != c.word || c.want != "" && got.Text != c.want || !strings.Contains(got.Mend, c.mend) {
			t.Errorf("%s: %+v, want %q %q", c.name, got, c.word, c.want)
		}
	}
}

// A public key in PEM where base64 is wanted, and the other way round.
func TestPublicKeys(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"1"}`)
	sum := sha256.Sum256(body)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	armoured, bare := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), base64.StdEncoding.EncodeToString(der)
	for _, c := range []struct {
		form   spec.KeyForm
		secret string
		word   diagnose.Word
		want   string
	}{
		{spec.KeyBase64, armoured, diagnose.SecretKind, "the secret is a key in PEM, and none is wanted"},
		{spec.KeyPEM, strings.ReplaceAll(strings.TrimSpace(armoured), "\n", `\n`), diagnose.SecretKind, `the secret is a key in PEM whose line breaks are written as \n`},
		{spec.KeyBase64, `"` + bare + `"`, diagnose.SecretQuoted, "the secret has quotes around it"},
	} {
		known := spec.Spec{Name: "acme", Verify: []spec.Verify{{Kind: spec.ECDSA, Key: c.form, Signature: spec.Signature{In: "header:X-Sig"}, Sign: []spec.Value{"body"}}}}
		req := &hookonce.Request{Method: http.MethodPost, Header: http.Header{"X-Sig": {base64.StdEncoding.EncodeToString(signature)}}, Body: body, Now: now}
		got := why(t, &diagnose.Capture{Spec: known, Settings: spec.Settings{Secrets: spec.Secrets(c.secret)}, Request: req})
		if got.Word != c.word || got.Text != c.want || !got.Proven {
			t.Errorf("%+v, want %q %q", got, c.word, c.want)
		}
	}
}

// The headers of a form, and what is made of it.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*diagnose.Capture)
		word  diagnose.Word
		want  string
	}{
		{"no type", func(c *diagnose.Capture) { c.Request.Header.Del("Content-Type") }, diagnose.ContentType, "the secret is right, but the body is a form, and the header Content-Type does not say so"},
		{"+", bodyIs(func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "%2B", "+")) }), diagnose.BodyParsed, "the secret is right, but the body is a form in which + is not written as %2B, and so stands for a space"},
		{"decoded", func(c *diagnose.Capture) {
			c.Request.Body = []byte("Body=bread+%26+cheese&From=%2B15005550006")
			p, _ := spec.New(c.Spec, c.Settings)
			_ = p.Sign(c.Request)
			c.Request.Body = []byte("Body=bread & cheese&From=+15005550006")
		}, diagnose.BodyParsed, "the secret is right, but the body is a form whose fields were decoded"},
		{"a tunnel", func(c *diagnose.Capture) { c.Settings.URL, c.Request.URL = "", "http://localhost:3000/in/hooks" }, diagnose.URLHost, "the URL is one that only this network knows, and the sender called another one"},
		{"a port", func(c *diagnose.Capture) { c.Settings.URL = "https://shop.example/in/hooks/" }, diagnose.URLPath, "the secret is right, but the URL has a slash at its end, and the signed one has none"},
		{"a proxy", func(c *diagnose.Capture) {
			c.Settings.URL, c.Request.URL = "", "http://10.0.0.7:3000/in/hooks"
			c.Request.Header.Set("X-Forwarded-Host", "shop.example")
		}, diagnose.URLScheme, "the secret is right, but the URL begins with http:, and the signed one with https:, and the signed URL has another host, which the header X-Forwarded-Host says"},
		{"no URL", func(c *diagnose.Capture) { c.Settings.URL, c.Request.URL = "", "" }, diagnose.URLMissing, "the signature covers the URL, which is not given"},
		{"GET", func(c *diagnose.Capture) { c.Request.Method = http.MethodHead }, diagnose.Method, "the request is a HEAD, and webhooks are sent with POST or GET"},
	} {
		capture := capture(t, "twilio")
		c.spoil(capture)
		if got := why(t, capture); got.Word != c.word || got.Text != c.want {
			t.Errorf("%s: %+v, want %q %q", c.name, got, c.word, c.want)
		}
	}
}

// Other providers are known by their headers, whether anybody else could sign as they do or not.
func TestLookalikes(t *testing.T) {
	for _, c := range []struct{ asked, header, value, want, mend string }{
		{"stripe", "Paypal-Transmission-Sig", "fake", "this looks like a request of PayPal, and not of Stripe", "--provider paypal,"},
		{"stripe", "Svix-Signature", "v1,fake", "this looks like a request of Svix, and not of Stripe", "--provider svix,"},
		{"stripe", "Webhook-Signature", "v1,fake", "this looks like a request of Standard Webhooks, and not of Stripe", "--provider standard,"},
		{"hubspot", "X-Hubspot-Signature", strings.Repeat("0", 64), "this looks like a request of HubSpot (signature versions 1 and 2), and not of HubSpot", "--provider hubspot-legacy,"},
		{"github", "X-Hubspot-Signature-V3", "fake", "this looks like a request of HubSpot, and not of GitHub", "--provider hubspot,"},
		{"github", "X-Slack-Signature", "v0=fake", "this looks like a request of Slack, and not of GitHub", "--provider slack,"},
	} {
		capture := capture(t, c.asked)
		capture.Request.Header = http.Header{"Content-Type": {"application/json"}, c.header: {c.value}}
		if got := why(t, capture); got.Word != diagnose.OtherProvider || got.Text != c.want || !strings.Contains(got.Mend, c.mend) || got.Proven {
			t.Errorf("%s, %s: %+v", c.asked, c.header, got)
		}
	}
}
