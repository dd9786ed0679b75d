package jws

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"pgregory.net/rapid"
)

const secret = "a fake secret of thirty-two bytes"

// owner has one key of each kind.
type owner struct {
	ec  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
}

func newOwner(t testing.TB) owner {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return owner{ec, long}
}

// token returns a token with that header and payload, signed as that algorithm is, whatever the header says.
func (o owner) token(t testing.TB, algorithm, header, payload string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	sum := sha256.Sum256([]byte(signed))
	var sig []byte
	switch algorithm {
	case "ES256":
		r, s, err := ecdsa.Sign(rand.Reader, o.ec, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		sig = make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
	case "RS256":
		var err error
		if sig, err = rsa.SignPKCS1v15(nil, o.rsa, crypto.SHA256, sum[:]); err != nil {
			t.Fatal(err)
		}
	default:
		sig = mac([]byte(secret), signed)
	}
	return signed + "." + encode(sig)
}

// public returns the key that verifies tokens of the algorithm.
func (o owner) public(algorithm string) any {
	return map[string]any{"ES256": &o.ec.PublicKey, "RS256": &o.rsa.PublicKey, "HS256": []byte(secret)}[algorithm]
}

// TestTokensLikeTheLibrary: no token is accepted that a JOSE library refuses, whatever is changed in it.
func TestTokensLikeTheLibrary(t *testing.T) {
	o := newOwner(t)
	algorithms := []string{"ES256", "RS256", "HS256"}
	headers := []string{
		`{"alg":"%s","kid":"K-1"}`, `{"alg":"%s","kid":"K-1","typ":"JWT"}`, `{"alg":"ES384","kid":"K-1"}`, `{"alg":"none","kid":"K-1"}`, `{"alg":"ES256"}`,
		`{"alg":"RS256"}`, `{"alg":"HS256"}`, `{"alg":"es256","kid":"K-1"}`, `{"ALG":"%s","kid":"K-1"}`, `{"kid":"K-1"}`,
		`{"alg":"%s","crit":["b64"],"b64":false}`, `{"alg":"%s","crit":["exp"],"exp":1}`, `[]`, ``, `{`,
	}
	ours := func(text, algorithm string) bool {
		token, ok := Parse(text, algorithm)
		return ok && token.SignedBy(o.public(algorithm))
	}
	theirs := func(text, algorithm string) bool {
		jws, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)})
		if err != nil {
			return false
		}
		_, err = jws.Verify(o.public(algorithm))
		return err == nil
	}
	for _, algorithm := range algorithms {
		if !ours(o.token(t, algorithm, fmt.Sprintf(headers[0], algorithm), `{"iat":1}`), algorithm) {
			t.Errorf("no token of %s is accepted", algorithm)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		algorithm := rapid.SampledFrom(algorithms).Draw(rt, "algorithm")
		header := rapid.SampledFrom(headers).Draw(rt, "header")
		if strings.Contains(header, "%s") {
			header = fmt.Sprintf(header, algorithm)
		}
		text := o.token(t, algorithm, header, `{"iat":1}`)
		if ours(text, algorithm) != theirs(text, algorithm) {
			rt.Fatalf("%s: ours accepts it: %v", header, ours(text, algorithm))
		}
		at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		with := rapid.SampledFrom(strings.Split("A|a|-|_|.|=| |\n|AA|", "|")).Draw(rt, "with")
		changed := text[:at] + with + text[at+1:]
		if ours(changed, algorithm) && !theirs(changed, algorithm) {
			rt.Fatalf("%s is accepted by us alone", changed)
		}
	})
}

// TestKeysAreForOneAlgorithm: a public key is no shared secret, and a token does not choose its algorithm.
func TestKeysAreForOneAlgorithm(t *testing.T) {
	o := newOwner(t)
	for _, of := range []string{"ES256", "RS256", "HS256"} {
		text := o.token(t, of, `{"alg":"`+of+`"}`, `{}`)
		for _, key := range []string{"ES256", "RS256", "HS256"} {
			token, ok := Parse(text, of)
			if !ok || token.SignedBy(o.public(key)) != (of == key) {
				t.Errorf("a token of %s under a key of %s: %v", of, key, ok)
			}
			if _, ok := Parse(text, key); ok != (of == key) {
				t.Errorf("a token of %s is taken where %s is wanted", of, key)
			}
		}
		if token, _ := Parse(text, of); token.SignedBy([]byte(nil)) || token.SignedBy(nil) || token.SignedBy("") {
			t.Errorf("a token of %s was signed by nobody", of)
		}
	}
	other, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if token, _ := Parse(o.token(t, "ES256", `{"alg":"ES256"}`, `{}`), "ES256"); token.SignedBy(&other.PublicKey) {
		t.Error("ES256 with a key on P-384")
	}
}

func TestChains(t *testing.T) {
	o := newOwner(t)
	for header, want := range map[string]int{
		`{"alg":"ES256"}`: 0, `{"alg":"ES256","x5c":["AQI=","AQ=="]}`: 2, `{"alg":"ES256","x5c":[]}`: 0,
		`{"alg":"ES256","x5c":"AQI="}`: -1, `{"alg":"ES256","x5c":[1]}`: -1, `{"alg":"ES256","x5c":[""]}`: -1, `{"alg":"ES256","x5c":["AQI"]}`: -1,
		`{"alg":"ES256","x5c":["` + strings.Repeat(`AQ==","`, 8) + `AQ=="]}`: -1,
	} {
		token, ok := Parse(o.token(t, "ES256", header, "{}"), "ES256")
		if ok != (want >= 0) || ok && len(token.Chain) != want {
			t.Errorf("%s: %d, %v", header, len(token.Chain), ok)
		}
	}
	if _, ok := Parse(strings.Repeat("A", maxToken)+".AA.AA", "ES256"); ok {
		t.Error("a token of any length is taken apart")
	}
}

const x, y = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" // RFC 7515, A.3

func TestParseKey(t *testing.T) {
	for text, good := range map[string]bool{
		`{"kty":"EC","crv":"P-256","kid":"K","x":"` + x + `","y":"` + y + `"}`: true,
		`{"kty":"EC","crv":"P-256","kid":"K","x":"` + y + `","y":"` + x + `"}`: false, // no point on the curve
		`{"kty":"EC","crv":"P-256","kid":"L","x":"` + x + `","y":"` + y + `"}`: false, // another key
		`{"kty":"EC","crv":"P-384","kid":"K","x":"` + x + `","y":"` + y + `"}`: false,
		`{"kty":"OKP","crv":"P-256","kid":"K","x":"` + x + `"}`:                false,
		`{"kty":"EC","crv":"P-256","kid":"K","x":"","y":""}`:                   false,
		`"K"`: false, `{}`: false, ``: false,
	} {
		if key, err := ParseKey([]byte(text), "K"); (err == nil) != good || good && key == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestParseSet takes what a library writes, and leaves out what is for something else.
func TestParseSet(t *testing.T) {
	o := newOwner(t)
	short, _ := rsa.GenerateKey(rand.Reader, 1024)
	large, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	text, err := jose.JSONWebKey{Key: &o.rsa.PublicKey, KeyID: "R", Use: "sig"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	set := []string{string(text)}
	for id, key := range map[string]any{"E": &o.ec.PublicKey, "short": &short.PublicKey, "large": &large.PublicKey, "": &o.ec.PublicKey} {
		text, err := jose.JSONWebKey{Key: key, KeyID: id}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, string(text))
	}
	text, _ = jose.JSONWebKey{Key: &o.rsa.PublicKey, KeyID: "enc", Use: "enc"}.MarshalJSON()
	set = append(set, string(text), `{"kty":"oct","kid":"S","k":"AAAA"}`, `{"kty":"RSA","kid":"even","n":"`+strings.Repeat("A", 342)+`","e":"AAEAAQAAAAA"}`)
	keys, err := ParseSet([]byte(`{"keys":[` + strings.Join(set, ",") + `]}`))
	if err != nil || len(keys) != 2 || !o.rsa.PublicKey.Equal(keys["R"].(*rsa.PublicKey)) || !o.ec.PublicKey.Equal(keys["E"].(*ecdsa.PublicKey)) {
		t.Errorf("%v, %v", keys, err)
	}
	for _, bad := range []string{"", "{}", "[]", `{"keys":[]}`, `{"keys":{}}`, `{"keys":[{"kty":"RSA"}]}`} {
		if keys, err := ParseSet([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, keys)
		}
	}
}

// TestTokensRoundTrip: what is made here is verified by a library, and the other way round.
func TestTokensRoundTrip(t *testing.T) {
	text, err := Tokens{}.Sign([]byte(`{"a":1}`), "HS256", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		t.Fatal(err)
	}
	if payload, err := parsed.Verify([]byte(secret)); err != nil || string(payload) != `{"a":1}` {
		t.Errorf("%s, %v", payload, err)
	}
	asked := ""
	keys := func(id string) []any { asked = id; return []any{[]byte("another"), []byte(secret)} }
	if payload, ok := (Tokens{}).Verify(text, []string{"HS256"}, keys); !ok || string(payload) != `{"a":1}` || asked != "" {
		t.Errorf("%s, %v, %q", payload, ok, asked)
	}
	if _, ok := (Tokens{}).Verify(text, []string{"RS256"}, keys); ok {
		t.Error("the token chose its algorithm")
	}
	if _, err := (Tokens{}).Sign([]byte("{}"), "HS512", []byte(secret)); err == nil {
		t.Error("HS512 is made")
	}
	all, err := (Tokens{}).Keys(`{"keys":[{"kty":"EC","crv":"P-256","kid":"K","x":"` + x + `","y":"` + y + `"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range all {
		ids = append(ids, id)
	}
	if !slices.Equal(ids, []string{"K"}) {
		t.Error(ids)
	}
	if _, err := (Tokens{}).Keys("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
