package spec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce"
	library "github.com/hookonce/hookonce/provider/spec/jose"
)

const sharedSecret = "a fake secret of thirty-two bytes"

// tokens is a sender that sends a token of these algorithms, bound to the body.
func tokens(algorithms ...string) Spec {
	s := plain()
	s.Verify = []Verify{{
		Kind: JWT, Tokens: library.Tokens{}, Algorithms: algorithms, BodyHash: "body_sha256",
		Signature: Signature{Prefix: "Bearer ", Split: ","},
		Time:      &Timestamp{In: "claim:iat", Past: 5 * time.Minute, Future: 5 * time.Minute},
	}}
	return s
}

// jwtFor returns a token about the body, with further claims, or without those that are nil.
func jwtFor(t testing.TB, a jose.SignatureAlgorithm, key any, kid, body string, claims map[string]any) string {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	all := map[string]any{"iat": now.Unix(), "body_sha256": hex.EncodeToString(sum[:])}
	for name, claim := range claims {
		if all[name] = claim; claim == nil {
			delete(all, name)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(all)
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func bearer(body string, tokens ...string) *hookonce.Request {
	line := "Bearer " + strings.Join(tokens, ",Bearer ")
	return &hookonce.Request{Header: http.Header{"Authorization": {line}}, Body: []byte(body), Now: now}
}

func TestTokenClaims(t *testing.T) {
	p := build1(t, tokens("HS256"), Settings{Secrets: Secrets(sharedSecret)})
	for _, c := range []struct {
		claims map[string]any
		want   string
	}{
		{nil, ""},
		{map[string]any{"exp": now.Unix() + 1, "nbf": now.Unix()}, ""},
		{map[string]any{"exp": now.Unix()}, hookonce.ReasonTimestampOld},
		{map[string]any{"exp": "soon"}, hookonce.ReasonTimestampMissing},
		{map[string]any{"nbf": now.Unix() + 1}, hookonce.ReasonTimestampFuture},
		{map[string]any{"iat": nil}, hookonce.ReasonTimestampMissing},
		{map[string]any{"iat": now.Unix() - 301}, hookonce.ReasonTimestampOld},
		{map[string]any{"iat": now.Unix() + 301}, hookonce.ReasonTimestampFuture},
		{map[string]any{"body_sha256": nil}, hookonce.ReasonSignatureMismatch},
		{map[string]any{"body_sha256": strings.Repeat("0", 64)}, hookonce.ReasonSignatureMismatch},
	} {
		req := bearer(`{"id":"1"}`, jwtFor(t, jose.HS256, []byte(sharedSecret), "", `{"id":"1"}`, c.claims))
		if c.want != "" {
			rejected(t, p, req, c.want)
			if c.want == hookonce.ReasonTimestampOld || c.want == hookonce.ReasonTimestampFuture {
				req.Body = []byte(`{"id":"2"}`) // with which its age is no excuse
				rejected(t, p, req, hookonce.ReasonSignatureMismatch)
			}
		} else if d, err := p.Open(req); err != nil || !d.Events[0].KeySigned {
			t.Errorf("%v: %v", c.claims, err)
		}
	}
}

// TestTheTimeIsThatOfTheVerifiedToken: an old genuine token beside a fresh forged one is old.
func TestTheTimeIsThatOfTheVerifiedToken(t *testing.T) {
	p := build1(t, tokens("HS256"), Settings{Secrets: Secrets(sharedSecret)})
	old := jwtFor(t, jose.HS256, []byte(sharedSecret), "", "{}", map[string]any{"iat": now.Unix() - 3600})
	forged := jwtFor(t, jose.HS256, []byte(strings.Repeat("x", 32)), "", "{}", nil)
	rejected(t, p, bearer("{}", old, forged), hookonce.ReasonTimestampOld)
	rejected(t, p, bearer("{}", forged, old), hookonce.ReasonTimestampOld)
}

// TestTokensDoNotChooseTheirVerification: not "none", and no public key as a shared secret.
func TestTokensDoNotChooseTheirVerification(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(private.Public())
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	p := build1(t, tokens("RS256"), Settings{Secrets: Secrets(public)})
	genuine := jwtFor(t, jose.RS256, private, "", "{}", nil)
	if _, err := p.Open(bearer("{}", genuine)); err != nil {
		t.Fatal(err)
	}
	payload := strings.Split(genuine, ".")[1]
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + payload
	for _, forged := range []string{none + ".", none + ".AAAA", jwtFor(t, jose.HS256, []byte(public), "", "{}", nil), jwtFor(t, jose.HS256, der, "", "{}", nil)} {
		if _, err := p.Open(bearer("{}", forged)); err == nil {
			t.Errorf("accepted %.60s", forged)
		}
	}
	for _, c := range []struct{ algorithm, secret, want string }{
		{"HS256", strings.TrimSpace(public), "want a shared secret"}, {"HS256", "short", "shorter than the 32 bytes"}, {"HS512", sharedSecret, "shorter than the 64"},
		{"none", sharedSecret, `there is no "none"`}, {"RS256", "nonsense", "neither a PEM public key"},
	} {
		if _, err := New(tokens(c.algorithm), Settings{Secrets: Secrets(c.secret)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.algorithm, err)
		}
	}
	if _, err := New(tokens("HS256", "RS256"), Settings{Secrets: Secrets(sharedSecret)}); err == nil || !strings.Contains(err.Error(), "families") {
		t.Error(err)
	}
}

func TestTokensSelectTheirKey(t *testing.T) {
	var set jose.JSONWebKeySet
	private := map[string]*ecdsa.PrivateKey{}
	for _, kid := range []string{"a", "b"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private[kid], set.Keys = key, append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: "ES256"})
	}
	text, _ := json.Marshal(set)
	p := build1(t, tokens("ES256"), Settings{Secrets: Secrets(string(text))})
	for _, c := range []struct{ signer, kid, want string }{
		{"a", "a", ""}, {"b", "b", ""}, {"b", "", ""}, {"a", "b", hookonce.ReasonSignatureMismatch}, {"a", "c", hookonce.ReasonSignatureMismatch},
	} {
		req := bearer("{}", jwtFor(t, jose.ES256, private[c.signer], c.kid, "{}", nil))
		if c.want != "" {
			rejected(t, p, req, c.want)
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMutatedTokens changes every byte of a token.
func TestMutatedTokens(t *testing.T) {
	p := build1(t, tokens("HS256"), Settings{Secrets: Secrets(sharedSecret)})
	genuine := jwtFor(t, jose.HS256, []byte(sharedSecret), "", "{}", nil)
	for i := range genuine {
		for _, flip := range []byte{1, 0x20} {
			b := []byte(genuine)
			b[i] ^= flip
			if d, err := p.Open(bearer("{}", string(b))); err == nil {
				t.Errorf("byte %d: %v", i, d)
			}
		}
	}
}

// TestSignedTokensOpen: the signer is the verifier's mirror.
func TestSignedTokensOpen(t *testing.T) {
	for _, claim := range []Value{"claim:iat", "claim:sent_at"} {
		s := tokens("HS256")
		s.Verify[0].Time.In = claim
		open(t, build1(t, s, Settings{Secrets: Secrets(sharedSecret)}), fmt.Sprintf(`{"id":%q}`, claim))
	}
}

// TestManySignaturesAreNotTried: each costs a verification for whoever can send a request.
func TestManySignaturesAreNotTried(t *testing.T) {
	p := build1(t, tokens("HS256"), Settings{Secrets: Secrets(sharedSecret)})
	genuine := jwtFor(t, jose.HS256, []byte(sharedSecret), "", "{}", nil)
	all := strings.Split(strings.Repeat(genuine+" ", maxSignatures), " ")[:maxSignatures]
	if _, err := p.Open(bearer("{}", all...)); err != nil {
		t.Error(err)
	}
	rejected(t, p, bearer("{}", append(all, genuine)...), hookonce.ReasonSignatureMalformed)
}

// jwk returns keys in JSON: one, or a set of several.
func jwk(t *testing.T, keys ...any) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key})
	}
	var v any = set
	if len(keys) == 1 {
		v = set.Keys[0]
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKeysFitTheAlgorithms: one that does not would reject every token, and only once they come.
func TestKeysFitTheAlgorithms(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small := &rsa.PublicKey{N: new(big.Int).Rsh(large.N, 1024), E: large.E} // its size is what counts here
	der, err := x509.MarshalPKIXPublicKey(&large.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	spki := base64.StdEncoding.EncodeToString(der)
	for _, c := range []struct {
		algorithms string
		secret     string
		want       string // empty: accepted
	}{
		{"ES256", jwk(t, &p256.PublicKey), ""}, {"ES384", jwk(t, &p384.PublicKey), ""}, {"RS256", inPEM, ""}, {"RS512", jwk(t, &large.PublicKey), ""},
		{"ES384 ES256", jwk(t, &p256.PublicKey), ""},
		{"ES256", jwk(t, &p384.PublicKey, &large.PublicKey, &p256.PublicKey), ""}, // senders publish all of theirs
		{"ES256", inPEM, "no public key for [ES256]"}, {"ES256", jwk(t, &large.PublicKey), "no public key"}, {"ES256", jwk(t, &p384.PublicKey), "no public key"},
		{"ES512", jwk(t, &p256.PublicKey, &p384.PublicKey), "no public key"}, {"RS256", jwk(t, &p256.PublicKey), "no public key"},
		{"RS256", jwk(t, small), "no public key"}, {"ES256", jwk(t, []byte(sharedSecret)), "is neither"}, {"RS256", jwk(t, []byte(sharedSecret), []byte("b")), "no public key"},
		{"ES256", jwk(t, p256), "is a private key"}, {"ES256", jwk(t, &p256.PublicKey, p256), "is a private key"},
		{"HS256", sharedSecret, ""}, {"HS256", `{"a": "secret that begins like JSON and is none of it"}`, ""},
		{"HS256", strings.TrimSpace(inPEM), "want a shared secret"}, {"HS256", spki, "want a shared secret"}, {"HS256", jwk(t, &p256.PublicKey), "want a shared secret"},
		{"HS256", jwk(t, &p256.PublicKey, &p384.PublicKey), "want a shared secret"}, {"HS256", jwk(t, []byte(sharedSecret)), "want a shared secret"},
	} {
		_, err := New(tokens(strings.Fields(c.algorithms)...), Settings{Secrets: Secrets(c.secret)})
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrSecret)):
			t.Errorf("%s with %.60s: %v, want %q", c.algorithms, c.secret, err, c.want)
		}
	}
}

// TestClaimsThatAreKnown: a token for somebody else, or from somebody else under the same secret, is refused.
func TestClaimsThatAreKnown(t *testing.T) {
	s := tokens("HS256")
	s.Verify[0].Claims = map[string]string{"iss": "acme", "aud": "shop"}
	p := build1(t, s, Settings{Secrets: Secrets(sharedSecret)})
	for _, c := range []struct {
		claims map[string]any
		ok     bool
	}{
		{map[string]any{"iss": "acme", "aud": "shop"}, true},
		{map[string]any{"iss": "acme"}, false},
		{map[string]any{"iss": "acme", "aud": "Shop"}, false},
		{map[string]any{"iss": "acme", "aud": []string{"shop"}}, false},
		{map[string]any{"iss": nil, "aud": "shop"}, false},
	} {
		req := bearer(`{"id":"1"}`, jwtFor(t, jose.HS256, []byte(sharedSecret), "", `{"id":"1"}`, c.claims))
		if c.ok {
			if _, err := p.Open(req); err != nil {
				t.Errorf("%v: %v", c.claims, err)
			}
		} else {
			rejected(t, p, req, hookonce.ReasonSignatureMismatch)
		}
	}
	req := &hookonce.Request{Body: []byte(`{"id":"1"}`), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(req); err != nil {
		t.Error(err)
	}
}

// TestTokensBindTheURL: a token does not fit at another address, nor with another query.
func TestTokensBindTheURL(t *testing.T) {
	s := tokens("HS256")
	s.Verify[0].URLHash = "url_hash"
	if !s.SignsURL() {
		t.Error("nobody is told that the URL is signed")
	}
	const url = "https://shop.example/in?a=1"
	p := build1(t, s, Settings{Secrets: Secrets(sharedSecret), URL: url})
	for seen, want := range map[string]bool{
		"http://10.0.0.1/in?a=1": true, "": true, // a proxy passes on another address
		"http://10.0.0.1/in?a=1&b=2": false, "http://10.0.0.1/in?a=2": false,
	} {
		req := &hookonce.Request{URL: url, Body: []byte(`{"id":"1"}`), Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		req.URL = seen
		if _, err := p.Open(req); (err == nil) != want {
			t.Errorf("%s: %v", seen, err)
		}
	}
	elsewhere := build1(t, s, Settings{Secrets: Secrets(sharedSecret), URL: "https://shop.example/other"})
	req := &hookonce.Request{Body: []byte(`{"id":"1"}`), Now: now}
	if err := elsewhere.Sign(req); err != nil {
		t.Fatal(err)
	}
	rejected(t, p, req, hookonce.ReasonSignatureMismatch)
}

// TestOnlyTokensHaveClaims: what means nothing is refused.
func TestOnlyTokensHaveClaims(t *testing.T) {
	for _, set := range []func(*Verify){
		func(v *Verify) { v.Claims = map[string]string{"iss": "acme"} },
		func(v *Verify) { v.URLHash = "url_hash" },
	} {
		s := plain()
		set(&s.Verify[0])
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "only a JWT has claims") {
			t.Error(err)
		}
	}
}
