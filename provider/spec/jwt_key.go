package spec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// jwtKey is a key, or a set of which the token's kid selects one.
type jwtKey struct {
	one any
	set []webKey
}

// webKey is a public key with its id, which may be empty.
type webKey struct {
	id  string
	key any
}

// candidates returns the keys that may have signed a token with that kid.
func (k jwtKey) candidates(kid string) []any {
	if k.set == nil {
		return []any{k.one}
	}
	var keys []any
	for _, key := range k.set {
		if key.id == kid || key.id == "" || kid == "" {
			keys = append(keys, key.key)
		}
	}
	return keys
}

// parseJWTSecret reads a shared secret of at least so many bytes. A public key is none: whoever has it,
// which is everybody, could sign.
func parseJWTSecret(text string, least int) (jwtKey, error) {
	key, err := KeyUTF8.decode(text)
	switch {
	case err != nil:
		return jwtKey{}, err
	case isKey(text):
		return jwtKey{}, errors.New("is a key in PEM, DER or JSON, and the algorithms want a shared secret")
	case len(key) < least:
		return jwtKey{}, fmt.Errorf("is shorter than the %d bytes that the algorithms need", least)
	}
	return jwtKey{one: key}, nil
}

// isKey reports whether a text is a key in one of the forms that public keys come in.
func isKey(text string) bool {
	der, _ := base64.StdEncoding.DecodeString(text)
	_, err := x509.ParsePKIXPublicKey(der)
	var jwk struct {
		Type string            `json:"kty"`
		Keys []json.RawMessage `json:"keys"`
	}
	return err == nil || strings.Contains(text, "-----BEGIN ") ||
		json.Unmarshal([]byte(text), &jwk) == nil && (jwk.Type != "" || jwk.Keys != nil)
}

// parseKey reads a PEM public key, a JWK or a set of them, for the matcher's algorithms. Of a set, the keys for others
// are left out.
func (m *jwtMatcher) parseKey(text string) (jwtKey, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		switch {
		case err != nil:
			return jwtKey{}, noPublicKey(block.Bytes)
		case !verifiesAny(key, m.algorithms):
			return jwtKey{}, otherKey(m.algorithms)
		}
		return jwtKey{one: key}, nil
	}
	keys, err := m.tokens.Keys(text)
	if err != nil {
		return jwtKey{}, err
	}
	var set []webKey
	for id, key := range keys {
		switch key.(type) {
		case *ecdsa.PrivateKey, *rsa.PrivateKey:
			return jwtKey{}, errPrivate
		}
		if verifiesAny(key, m.algorithms) {
			set = append(set, webKey{id, key})
		}
	}
	if len(set) == 0 {
		return jwtKey{}, otherKey(m.algorithms)
	}
	return jwtKey{set: set}, nil
}

// jwtCurves are the curves of the algorithms that have one.
var jwtCurves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

// verifiesAny reports whether one of the algorithms verifies with a key of that type and size.
func verifiesAny(key any, algorithms []string) bool {
	return slices.ContainsFunc(algorithms, func(a string) bool {
		curve := jwtCurves[a]
		switch key := key.(type) {
		case *ecdsa.PublicKey:
			return curve != nil && key.Curve == curve
		case *rsa.PublicKey:
			return curve == nil && key.Size() >= 2048/8
		}
		return false
	})
}

func otherKey(algorithms []string) error {
	return fmt.Errorf("has no public key for %v: ES256, ES384 and ES512 take one on P-256, P-384 and P-521, and RS256 and the longer ones an RSA key of at least 2048 bits", algorithms)
}
