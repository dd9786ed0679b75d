// Package jose reads and makes JSON Web Tokens for senders that sign with them: it is the JOSE library behind the
// contract of spec.Tokens. A program that describes such a sender imports it and says so:
//
//	spec.Verify{Kind: spec.JWT, Tokens: jose.Tokens{}, Algorithms: []string{"HS256"}}
//
// Package specyaml does the same for the descriptions that it reads. No sender of the catalogue needs it.
package jose

import (
	"encoding/json"
	"errors"
	"iter"

	"github.com/go-jose/go-jose/v4"
)

// Tokens implements spec.Tokens.
type Tokens struct{}

// Keys yields the keys of a JSON Web Key, or of a set of them, with their ids. An error says what the text is not.
func (Tokens) Keys(text string) (iter.Seq2[string, any], error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) == 0 {
		var one jose.JSONWebKey
		if err := json.Unmarshal([]byte(text), &one); err != nil || !one.Valid() {
			return nil, errors.New("is neither a PEM public key nor a JSON Web Key nor a set of them")
		}
		set.Keys = []jose.JSONWebKey{one}
	}
	return func(yield func(string, any) bool) {
		for _, key := range set.Keys {
			if !yield(key.KeyID, key.Key) {
				return
			}
		}
	}, nil
}

// Verify returns the payload of a token in compact form that has one of the algorithms and was signed with one of the
// keys that are given for its id.
func (Tokens) Verify(token string, algorithms []string, keys func(id string) []any) (payload []byte, ok bool) {
	accepted := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, name := range algorithms {
		accepted[i] = jose.SignatureAlgorithm(name)
	}
	jws, err := jose.ParseSignedCompact(token, accepted)
	if err != nil {
		return nil, false
	}
	for _, key := range keys(jws.Signatures[0].Header.KeyID) {
		if payload, err := jws.Verify(key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// Sign returns a token in compact form, made with a shared secret.
func (Tokens) Sign(payload []byte, algorithm string, secret []byte) (token string, err error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: secret}, nil)
	if err != nil {
		return "", err
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return jws.CompactSerialize()
}
