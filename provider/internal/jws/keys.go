package jws

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
)

// webKey is a JSON Web Key as far as it is a public key for RS256 or ES256.
type webKey struct {
	Type  string `json:"kty"`
	Use   string `json:"use"`
	ID    string `json:"kid"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	N     string `json:"n"`
	E     string `json:"e"`
}

// ParseKey reads a public key of ES256 from a JSON Web Key with that id.
func ParseKey(text []byte, id string) (*ecdsa.PublicKey, error) {
	var k webKey
	if json.Unmarshal(text, &k) != nil {
		return nil, errors.New("the answer does not hold a JSON Web Key")
	}
	if k.Type != "EC" || k.Curve != "P-256" || k.ID != id {
		return nil, errors.New("the answer is not the ES256 key that was asked for")
	}
	return k.curve()
}

// ParseSet reads the public keys of RS256 and ES256 in a JSON Web Key Set by their ids, which are not empty. Keys of
// other kinds, for encryption, or too short (RSA of less than 2048 bits) are left out. A set without any is an error.
func ParseSet(text []byte) (map[string]any, error) {
	var set struct {
		Keys []webKey `json:"keys"`
	}
	if json.Unmarshal(text, &set) != nil {
		return nil, errors.New("the answer is not a JSON Web Key Set")
	}
	keys := map[string]any{}
	for _, k := range set.Keys {
		if key := k.public(); key != nil && k.ID != "" && (k.Use == "" || k.Use == "sig") {
			keys[k.ID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the set has no key for RS256 or ES256 with an id")
	}
	return keys, nil
}

// public returns the key, nil if it is none that is used here.
func (k webKey) public() any {
	switch k.Type {
	case "RSA":
		if key, err := k.modulus(); err == nil {
			return key
		}
	case "EC":
		if key, err := k.curve(); err == nil {
			return key
		}
	}
	return nil
}

func (k webKey) modulus() (*rsa.PublicKey, error) {
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if errN != nil || errE != nil || len(e) > 4 || key.E < 3 || key.E%2 == 0 || key.N.BitLen() < 2048 || key.N.BitLen() > 8192 {
		return nil, errors.New("the key is no RSA key of 2048 to 8192 bits")
	}
	return key, nil
}

func (k webKey) curve() (*ecdsa.PublicKey, error) {
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	if k.Curve != "P-256" || errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, errors.New("the key in the answer has no point of two numbers of 32 bytes")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil {
		return nil, errors.New("the key in the answer is no point on the curve P-256")
	}
	return key, nil
}
