package spec_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// The headers that hold the secret itself are named, and no others.
func TestSecretHeaders(t *testing.T) {
	for _, c := range []struct {
		verify spec.Verify
		want   []string
	}{
		{spec.Verify{Kind: spec.Token, Signature: spec.Signature{In: "header:x-token"}}, []string{"X-Token"}},
		{spec.Verify{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}}, nil},
		{spec.Verify{Kind: spec.Basic, Signature: spec.Signature{In: "header:x-auth"}}, []string{"X-Auth"}},
		{spec.Verify{Kind: spec.HMAC, Hash: spec.SHA256, Encoding: spec.Hex, Sign: []spec.Value{"body"}, Signature: spec.Signature{In: "header:X-Sig"}}, nil},
	} {
		s := spec.Spec{Name: "acme", Verify: []spec.Verify{c.verify}, Event: spec.Extract{Key: [][]spec.Value{{"json:$.id"}}}}
		p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("fake:token")})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Profile().SecretHeaders; !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.verify.Signature, got, c.want)
		}
	}
}

const passing = `
name: acme
verify: [{signature: {in: "header:X-Sig"}, id: "header:X-Id", time: {in: "header:X-Time"}, sign: [id, ts, body]}]
split: {items: ["json:$.events[*]"]}
event:
  key: [["item:$.id"], ["item:$.n", "header:X-Key?"]]
  type: ["header:X-Type"]
  time: [{in: "header:X-At"}]
dedup: {logical: [{key: ["item:$.id", "header:X-Logical?"]}]}
order: {by: "header:X-Version", scope: ["header:X-Scope"]}
headers: [X-Acme-*]
`

// Every header that a specification names is passed, wherever it names it.
func TestNamedHeadersPass(t *testing.T) {
	s, err := specyaml.Parse([]byte(passing))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("fake")})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for _, name := range []string{"X-Sig", "X-Id", "X-Time", "X-Key", "X-Type", "X-At", "X-Logical", "X-Version", "X-Scope", "X-Acme-Else"} {
		header.Set(name, "1")
	}
	lines, err := p.PassedHeaders().Encode(header)
	for name := range header {
		if err != nil || !strings.Contains(string(lines), name+": 1\r\n") {
			t.Errorf("%s is lost: %v", name, err)
		}
	}
}

func TestHeadersAreChecked(t *testing.T) {
	for headers, want := range map[string]string{
		"[X-Acme-*, X-Tenant]":    "",
		"[Hookonce-Key]":          "headers[0]: Hookonce-Key is set by this program",
		"[X-A, Connection]":       "headers[1]: Connection belongs to one connection",
		"[Authorization]":         "headers[0]: Authorization is never passed on",
		"[\"*\"]":                 "headers[0]: \"*\" is not the beginning",
		"[X-A, Idempotency-Key]":  "headers[1]: Idempotency-Key is set by this program",
		"[X-A, \"Webhook-Id\"]":   "",
		"[\"X A\"]":               "headers[0]: \"X A\" is not the name of a header",
		"[Proxy-Authenticate]":    "headers[0]: Proxy-Authenticate belongs to one connection",
		"[X-A, hookonce-event-*]": "headers[1]: ",
	} {
		s, err := specyaml.Parse([]byte("name: acme\nverify: [{signature: {in: \"header:X-Sig\"}, sign: [body]}]\nevent: {key: [[json:$.id]]}\nheaders: " + headers))
		if err == nil {
			err = s.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", headers, err, want)
		}
	}
}
