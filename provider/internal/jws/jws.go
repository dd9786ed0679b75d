// Package jws reads and makes the JSON Web Tokens of the catalogue's senders: RS256, ES256 and HS256 in compact form,
// and sets of public keys. What remains of JOSE is so little that the standard library does it, and programs that
// receive from these senders carry no other for it. Package provider/spec/jose is for all others.
package jws

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// Token is a JSON Web Token. Nothing in it is believed until it is known who signed it.
type Token struct {
	Algorithm string
	KeyID     string
	// Chain are certificates in DER, that of the signer first, as the header x5c has them; at most maxChain.
	Chain   [][]byte
	Payload []byte

	signed    string // what the signature is made over
	signature []byte
}

const (
	maxChain = 8
	maxToken = 1 << 20 // bytes; bodies that are tokens have their own bound
)

// Parse takes a token apart, if it is of one of the algorithms. Its header must not ask for extensions, which whoever
// does not know them has to refuse (RFC 7515, section 4.1.11).
func Parse(text string, algorithms ...string) (t Token, ok bool) {
	parts := strings.Split(text[:min(len(text), maxToken+1)], ".")
	if len(parts) != 3 || len(text) > maxToken {
		return t, false
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil || part == "" {
			return t, false
		}
	}
	var header map[string]any
	if json.Unmarshal(decoded[0], &header) != nil || header["crit"] != nil {
		return t, false
	}
	t.Algorithm, _ = header["alg"].(string)
	t.KeyID, _ = header["kid"].(string)
	if t.Chain, ok = chain(header["x5c"]); !ok {
		return t, false
	}
	t.Payload, t.signature = decoded[1], decoded[2]
	t.signed = text[:len(parts[0])+1+len(parts[1])]
	return t, slices.Contains(algorithms, t.Algorithm)
}

// chain decodes the header x5c, which may be absent. Its base64 is the usual one, with padding.
func chain(header any) (certificates [][]byte, ok bool) {
	list, is := header.([]any)
	if header == nil {
		return nil, true
	}
	if !is || len(list) > maxChain {
		return nil, false
	}
	for _, entry := range list {
		text, _ := entry.(string)
		der, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || text == "" {
			return nil, false
		}
		certificates = append(certificates, der)
	}
	return certificates, true
}

// SignedBy reports whether the owner of the key has signed the token: an *rsa.PublicKey for RS256, an *ecdsa.PublicKey
// on P-256 for ES256, a []byte for HS256. A key of another kind than the token's has not.
func (t Token) SignedBy(key any) bool {
	digest := sha256.Sum256([]byte(t.signed))
	switch key := key.(type) {
	case *rsa.PublicKey:
		return t.Algorithm == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], t.signature) == nil
	case *ecdsa.PublicKey:
		if t.Algorithm != "ES256" || key.Curve != elliptic.P256() || len(t.signature) != 64 {
			return false
		}
		r, s := new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:])
		return ecdsa.Verify(key, digest[:], r, s)
	case []byte:
		return t.Algorithm == "HS256" && len(key) > 0 && hmac.Equal(t.signature, mac(key, t.signed))
	}
	return false
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
