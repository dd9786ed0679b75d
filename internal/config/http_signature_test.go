package config

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
)

// keyFiles are what the configurations of the tests refer to.
func keyFiles(name string) ([]byte, error) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	text, ok := map[string]string{
		"ed.pem": ed.Private, "ed.pub": ed.Public, "rsa.pem": httpsigtest.Of(httpsig.RSAPSSSHA512).Private,
		"secret": httpsigtest.Secret + "\n", "short": "fake\n", "whsec": "whsec_ZmFrZSBzZWNyZXQgb2YgdGhlIGFwcA==\n", "broken.pem": ed.Private[:70],
	}[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func loadHTTP(destination string) (*Config, error) {
	return Load(Input{Path: "hookonce.yaml", ReadFile: keyFiles, Environ: []string{"STRIPE=whsec_c2VjcmV0LWZvci10ZXN0cy0x", "SHARED=" + httpsigtest.Secret}, Data: []byte(
		"destinations:\n  - name: app\n" + destination +
			"sources:\n  - {name: billing, provider: stripe, secrets: [\"env:STRIPE\"], routes: [{to: app}]}\n" +
			"  - {name: partner, provider: http-signature, secrets: [\"env:SHARED\"], url: \"https://in.example/in/partner\", routes: [{to: app}]}\n")})
}

func TestHTTPSignatureKeys(t *testing.T) {
	cfg, err := loadHTTP("    url: https://app.internal/\n    app_url: https://shop.example/in\n    http_signature:\n" +
		"      app-2026: file:ed.pem\n      app-2025: file:rsa.pem\n      \"shared:1\": env:SHARED\n")
	if err != nil || len(cfg.Warnings) > 0 {
		t.Fatal(err, cfg)
	}
	d := &cfg.Destinations[0]
	keys, err := d.HTTPKeys()
	if got := fmt.Sprint(keys, err); got != "[{key app-2026, ed25519} {key app-2025, rsa-pss-sha512} {key shared:1, hmac-sha256}] <nil>" {
		t.Error(got)
	}
	shown := strings.Join(httpKeys{&d.HTTPSignature}.Items(), ", ")
	if shown != `app-2026: file:ed.pem, app-2025: file:rsa.pem, "shared:1": env:SHARED` {
		t.Error(shown)
	}
	after, err := loadHTTP("    url: https://app.internal/\n    app_url: https://shop.example/in\n    http_signature: {app-2026: file:ed.pem}\n")
	if err != nil {
		t.Fatal(err)
	}
	if changes := fmt.Sprint(cfg.Changes(after)); !strings.Contains(changes, "destination app: http_signature changed (3 → 1)") {
		t.Error(changes)
	}
}

// What is wrong with a key is told with its place and its id, and without any of it.
func TestHTTPSignatureFaults(t *testing.T) {
	const url = "    url: https://app.internal/\n"
	for _, c := range []struct{ text, want string }{
		{url + "    http_signature:\n      a: file:ed.pub\n", `hookonce.yaml:5:7: http_signature: the key "a" is a public key, with which nothing can be signed; give the private key`},
		{url + "    http_signature:\n      a: file:broken.pem\n", `hookonce.yaml:5:7: http_signature: the key "a" begins like PEM and is none; copy it whole`},
		{url + "    http_signature: {a: file:whsec}\n", `hookonce.yaml:4:22: http_signature: the key "a" begins with whsec_`},
		{url + "    http_signature: {a: file:short}\n", `hookonce.yaml:4:22: http_signature: the key "a" is shorter than 16 bytes and could be guessed`},
		{url + "    http_signature: {a: file:gone.pem}\n", `hookonce.yaml:4:22: http_signature: the file gone.pem does not exist`},
		{url + "    http_signature: {a: env:NOT_SET}\n", `http_signature: the environment variable NOT_SET is not set`},
		{url + "    http_signature: {a: \"\"}\n", `http_signature: "a": the secret is empty; write env:NAME`},
		{url + "    http_signature: {\"ü\": file:ed.pem}\n", `http_signature: the keyid is not 1 to 255 characters`},
		{url + "    http_signature: [file:ed.pem]\n", `hookonce.yaml:4:5: http_signature is a list; write a group, such as {app-2026: file:app-key.pem}`},
		{url + "    http_signature: {a: file:ed.pem, b: file:ed.pem, c: file:ed.pem, d: file:ed.pem, e: file:ed.pem}\n", `5 keys would sign each delivery; keep the 4`},
		{url + "    http_signature: {a: file:ed.pem}\n    headers: {Signature-Input: x}\n", `headers: Signature-Input is set by http_signature; remove one of the two`},
		{url + "    http_signature: {a: file:ed.pem}\n    sign_as: provider\n", `Signature and Signature-Input, and so does HTTP message signatures (RFC 9421), the provider of source "partner"; write sign_as: none`},
		{url + "    app_url: https://shop.example/\n", "app_url: deliveries to \"app\" are not signed as the provider"},
		{"    url: https://bücher.example/\n    http_signature: {a: file:ed.pem}\n", `hookonce.yaml:3:5: url: the host has letters beyond ASCII`},
		{url + "    app_url: https://bücher.example/\n    http_signature: {a: file:ed.pem}\n", `hookonce.yaml:4:5: app_url: the host has letters beyond ASCII`},
	} {
		_, err := loadHTTP(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.text, err, c.want)
		}
		for _, secret := range []string{"fake secret", "ZmFrZSBzZWNy", "MC4CAQAw"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the fault has the key: %v", err)
			}
		}
	}
	if _, err := loadHTTP(url + "    http_signature: {a: file:ed.pem}\n    secrets: [\"env:SHARED\"]\n"); err != nil {
		t.Errorf("both signatures may stand beside each other: %v", err)
	}
}
