package scheme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"pgregory.net/rapid"
)

// esToken returns a token with that header and payload, signed with the key as ES256 is, whatever the header says.
func esToken(t testing.TB, key *ecdsa.PrivateKey, header, payload string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + encode(sig)
}

// TestPlaidTokensLikeTheLibrary: no token is accepted that a JOSE library refuses, whatever is changed in it.
func TestPlaidTokensLikeTheLibrary(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	headers := []string{
		`{"alg":"ES256","kid":"K-1"}`, `{"alg":"ES256","kid":"K-1","typ":"JWT"}`, `{"alg":"ES384","kid":"K-1"}`, `{"alg":"none","kid":"K-1"}`,
		`{"alg":"es256","kid":"K-1"}`, `{"ALG":"ES256","kid":"K-1"}`, `{"kid":"K-1"}`, `{"alg":"ES256","crit":["b64"],"b64":false}`, `{"alg":"ES256","crit":["exp"],"exp":1}`, `[]`, ``, `{`,
	}
	accepted := 0
	ours := func(text string) bool {
		token, ok := parsePlaidToken(text)
		return ok && token.signedBy(&key.PublicKey)
	}
	theirs := func(text string) bool {
		jws, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			return false
		}
		_, err = jws.Verify(&key.PublicKey)
		return err == nil
	}
	rapid.Check(t, func(rt *rapid.T) {
		header := rapid.SampledFrom(headers).Draw(rt, "header")
		text := esToken(t, key, header, `{"iat":1}`)
		if ours(text) != theirs(text) {
			rt.Fatalf("%s: ours accepts it: %v", header, ours(text))
		}
		at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		with := rapid.SampledFrom(strings.Split("A|a|-|_|.|=| |\n|AA|", "|")).Draw(rt, "with")
		changed := text[:at] + with + text[at+1:]
		if ours(changed) && !theirs(changed) {
			rt.Fatalf("%s is accepted by us alone", changed)
		}
		if ours(text) {
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("no token was accepted at all")
	}
}

func TestPlaidKeys(t *testing.T) {
	const x, y = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" // RFC 7515, A.3
	for text, good := range map[string]bool{
		`{"key":{"kty":"EC","crv":"P-256","kid":"K","x":"` + x + `","y":"` + y + `"}}`: true,
		`{"key":{"kty":"EC","crv":"P-256","kid":"K","x":"` + y + `","y":"` + x + `"}}`: false, // no point on the curve
		`{"key":{"kty":"EC","crv":"P-256","kid":"L","x":"` + x + `","y":"` + y + `"}}`: false, // another key
		`{"key":{"kty":"EC","crv":"P-384","kid":"K","x":"` + x + `","y":"` + y + `"}}`: false,
		`{"key":{"kty":"OKP","crv":"P-256","kid":"K","x":"` + x + `"}}`:                false,
		`{"key":{"kty":"EC","crv":"P-256","kid":"K","x":"","y":""}}`:                   false,
		`{"key":"K"}`: false, `{}`: false, ``: false,
	} {
		if key, err := parsePlaidKey([]byte(text), "K"); (err == nil) != good || good && key.public == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
