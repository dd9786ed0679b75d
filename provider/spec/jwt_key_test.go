package spec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

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
