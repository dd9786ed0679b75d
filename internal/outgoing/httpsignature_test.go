package outgoing_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/outgoing"
)

const appAddress = "https://app.example:443/hooks?tenant=1"

var signedAt = time.Unix(1767323046, 0)

func httpKey(t *testing.T, id string, a httpsig.Algorithm) outgoing.HTTPKey {
	t.Helper()
	key, err := outgoing.NewHTTPKey(id, httpsigtest.Of(a).Private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// What is signed must not change without need: receivers may insist on what is covered.
func TestHTTPSignatureText(t *testing.T) {
	keys := []outgoing.HTTPKey{httpKey(t, "old", httpsig.HMACSHA256), httpKey(t, `new"1"`, httpsig.Ed25519)}
	h := facts()
	h["Signature"], h["Signature-Input"], h["Content-Digest"] = []string{"theirs"}, []string{"theirs"}, []string{"theirs", "and more"}
	h["Content-Encoding"] = []string{"gzip"}
	if err := outgoing.SignHTTP(h, keys, http.MethodPost, "https://user:pass@app.example:443/hooks?tenant=1#x", signedAt, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	const covered = `("@method" "@authority" "@path" "@query" "content-digest" "content-type" "content-encoding" "hookonce-attempt" "hookonce-event-type" "hookonce-key" "hookonce-source" "idempotency-key")` +
		`;created=1767323046;expires=1767323346;keyid=`
	if want := "sig1=" + covered + `"old";alg="hmac-sha256", sig2=` + covered + `"new\"1\"";alg="ed25519"`; h.Get("Signature-Input") != want {
		t.Errorf("%s\nwant\n%s", h.Get("Signature-Input"), want)
	}
	if want := "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"; !slices.Equal(h["Content-Digest"], []string{want}) {
		t.Errorf("%s, want %s", h["Content-Digest"], want)
	}
	found, err := httpsig.Parse(h["Signature-Input"], h["Signature"])
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for i, key := range keys {
		base, err := found[i].Base(&httpsig.Request{Method: "POST", URL: appAddress, Header: h})
		if err != nil || !key.Verify(base, found[i].Value) || key.Verify(append(base, ' '), found[i].Value) {
			t.Errorf("the signature of %v does not verify: %v", key, err)
		}
	}
	const text = "\"@method\": POST\n\"@authority\": app.example\n\"@path\": /hooks\n\"@query\": ?tenant=1\n\"content-digest\": "
	if base, _ := found[0].Base(&httpsig.Request{Method: "POST", URL: appAddress, Header: h}); !strings.HasPrefix(string(base), text) {
		t.Errorf("signed is\n%s", base)
	}
}

// A header that receivers read differently cannot make a delivery fail for ever: it is not covered.
func TestHTTPSignatureLeavesOut(t *testing.T) {
	h := facts()
	h["Content-Type"] = []string{"text/pl\xe4in"}
	if got := outgoing.HTTPHeaders(h); slices.Contains(got, "content-type") || !slices.Equal(got, outgoing.HTTPFacts(h)) {
		t.Errorf("it covers %q", got)
	}
}

func TestHTTPKeysThatAreNone(t *testing.T) {
	for _, c := range []struct{ id, text, want string }{
		{"", httpsigtest.Secret, "the keyid is not"},
		{"ü", httpsigtest.Secret, "the keyid is not"},
		{strings.Repeat("k", 256), httpsigtest.Secret, "the keyid is not"},
		{"k1", httpsigtest.Of(httpsig.Ed25519).Public, `the key "k1" is a public key`},
	} {
		if _, err := outgoing.NewHTTPKey(c.id, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.id, err, c.want)
		}
	}
}

func TestHTTPAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"https://app.example/x": "", "https://bücher.example/": "xn--", "http:///": "must begin",
	} {
		if err := outgoing.CheckHTTPAddress(address); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", address, err, want)
		}
	}
	// What net/http sends of an address is what is signed.
	h := facts()
	if err := outgoing.SignHTTP(h, []outgoing.HTTPKey{httpKey(t, "k", httpsig.HMACSHA256)}, "POST", "http://app.example:?", signedAt, nil); err != nil {
		t.Fatal(err)
	}
	found, _ := httpsig.Parse(h["Signature-Input"], h["Signature"])
	for _, seen := range []string{"http://app.example/", "https://APP.example/?", "http://app.example:80"} {
		base, err := found[0].Base(&httpsig.Request{Method: "POST", URL: seen, Header: h})
		if err != nil || !httpKey(t, "k", httpsig.HMACSHA256).Verify(base, found[0].Value) {
			t.Errorf("seen as %s it does not verify: %v", seen, err)
		}
	}
}
