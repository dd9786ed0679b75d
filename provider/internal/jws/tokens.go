package jws

import (
	"encoding/base64"
	"errors"
	"iter"
)

// Tokens implements spec.Tokens for senders that share their secret: HS256.
type Tokens struct{}

// Keys yields the keys of a JSON Web Key Set with their ids.
func (Tokens) Keys(text string) (iter.Seq2[string, any], error) {
	keys, err := ParseSet([]byte(text))
	if err != nil {
		return nil, errors.New("is neither a PEM public key nor a JSON Web Key Set with a key for RS256 or ES256")
	}
	return func(yield func(string, any) bool) {
		for id, key := range keys {
			if !yield(id, key) {
				return
			}
		}
	}, nil
}

// Verify returns the payload of a token that has one of the algorithms and was signed with one of the keys that are
// given for its id.
func (Tokens) Verify(token string, algorithms []string, keys func(id string) []any) (payload []byte, ok bool) {
	t, ok := Parse(token, algorithms...)
	if !ok {
		return nil, false
	}
	for _, key := range keys(t.KeyID) {
		if t.SignedBy(key) {
			return t.Payload, true
		}
	}
	return nil, false
}

// Sign returns a token of HS256, made with a shared secret.
func (Tokens) Sign(payload []byte, algorithm string, secret []byte) (string, error) {
	if algorithm != "HS256" {
		return "", errors.New("tokens are made with HS256 only")
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac(secret, signed)), nil
}
