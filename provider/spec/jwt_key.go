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

	"github.com/go-jose/go-jose/v4"
)

// jwtKey is a key, or a set of which the token's kid selects one.
type jwtKey struct {
	one any
	set []jose.JSONWebKey
}

// candidates returns the keys that may have signed a token with that kid.
func (k jwtKey) candidates(kid string) []any {
	if k.set == nil {
		return []any{k.one}
	}
	var keys []any
	for _, key := range k.set {
		if key.KeyID == kid || key.KeyID == "" || kid == "" {
			keys = append(keys, key.Key)
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

// parseJWTKey reads a PEM public key, a JWK or a set of them, for those algorithms. Of a set, the keys for
// others are left out.
func parseJWTKey(text string, algorithms []jose.SignatureAlgorithm) (jwtKey, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		switch {
		case err != nil:
			return jwtKey{}, noPublicKey(block.Bytes)
		case !verifiesAny(key, algorithms):
			return jwtKey{}, otherKey(algorithms)
		}
		return jwtKey{one: key}, nil
	}
	keys, err := parseJWKs(text)
	if err != nil {
		return jwtKey{}, err
	}
	keys = slices.DeleteFunc(keys, func(key jose.JSONWebKey) bool { return !verifiesAny(key.Key, algorithms) })
	if len(keys) == 0 {
		return jwtKey{}, otherKey(algorithms)
	}
	return jwtKey{set: keys}, nil
}

// parseJWKs reads a JSON Web Key or a set of them.
func parseJWKs(text string) ([]jose.JSONWebKey, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) == 0 {
		var one jose.JSONWebKey
		if err := json.Unmarshal([]byte(text), &one); err != nil || !one.Valid() {
			return nil, errors.New("is neither a PEM public key nor a JSON Web Key nor a set of them")
		}
		set.Keys = []jose.JSONWebKey{one}
	}
	for _, key := range set.Keys {
		switch key.Key.(type) {
		case *ecdsa.PrivateKey, *rsa.PrivateKey:
			return nil, errPrivate
		}
	}
	return set.Keys, nil
}

// jwtCurves are the curves of the algorithms that have one.
var jwtCurves = map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()}

// verifiesAny reports whether one of the algorithms verifies with a key of that type and size.
func verifiesAny(key any, algorithms []jose.SignatureAlgorithm) bool {
	return slices.ContainsFunc(algorithms, func(a jose.SignatureAlgorithm) bool {
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

func otherKey(algorithms []jose.SignatureAlgorithm) error {
	return fmt.Errorf("has no public key for %v: ES256, ES384 and ES512 take one on P-256, P-384 and P-521, and RS256 and the longer ones an RSA key of at least 2048 bits", algorithms)
}
