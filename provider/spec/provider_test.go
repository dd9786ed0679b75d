package spec_test

import (
	"slices"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// The headers that hold the secret itself are named, and no others.
func TestSecretHeaders(t *testing.T) {
	for _, c := range []struct {
		verify spec.Verify
		want   []string
	}{
		{spec.Verify{Kind: spec.Token, Signature: spec.Signature{In: "header:x-token"}}, []string{"X-Token"}},
		{spec.Verify{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}}, nil},
		{spec.Verify{Kind: spec.HMAC, Hash: spec.SHA256, Encoding: spec.Hex, Sign: []spec.Value{"body"}, Signature: spec.Signature{In: "header:X-Sig"}}, nil},
	} {
		s := spec.Spec{Name: "acme", Verify: []spec.Verify{c.verify}, Event: spec.Extract{Key: [][]spec.Value{{"json:$.id"}}}}
		p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("fake-token")})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Profile().SecretHeaders; !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.verify.Signature, got, c.want)
		}
	}
}
