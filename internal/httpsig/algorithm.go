package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// Algorithm is the name of an algorithm in the registry of RFC 9421.
type Algorithm string

// The algorithms.
const (
	HMACSHA256      Algorithm = "hmac-sha256"
	Ed25519         Algorithm = "ed25519"
	ECDSAP256SHA256 Algorithm = "ecdsa-p256-sha256"
	ECDSAP384SHA384 Algorithm = "ecdsa-p384-sha384"
	RSAPSSSHA512    Algorithm = "rsa-pss-sha512"
	RSAv15SHA256    Algorithm = "rsa-v1_5-sha256"
)

// Algorithms lists all of them.
var Algorithms = []Algorithm{HMACSHA256, Ed25519, ECDSAP256SHA256, ECDSAP384SHA384, RSAPSSSHA512, RSAv15SHA256}

// Known reports whether there is such an algorithm.
func (a Algorithm) Known() bool { return slices.Contains(Algorithms, a) }

// Fits reports whether a key is for the algorithm: the bytes of a shared secret, a public key, or a private one. RSA
// keys have at least 2048 bits.
func (a Algorithm) Fits(key any) bool {
	switch key := public(key).(type) {
	case []byte:
		return a == HMACSHA256 && len(key) > 0
	case ed25519.PublicKey:
		return a == Ed25519 && len(key) == ed25519.PublicKeySize
	case *ecdsa.PublicKey:
		return a == ECDSAP256SHA256 && key.Curve == elliptic.P256() || a == ECDSAP384SHA384 && key.Curve == elliptic.P384()
	case *rsa.PublicKey:
		return (a == RSAPSSSHA512 || a == RSAv15SHA256) && key.Size() >= 2048/8
	}
	return false
}

// Verify reports whether the signature of the text was made with the key, which must fit, or with the private key that
// belongs to it.
func (a Algorithm) Verify(key any, base, signature []byte) bool {
	if !a.Fits(key) {
		return false
	}
	switch key := public(key).(type) {
	case []byte:
		return hmac.Equal(signature, MAC(key, base))
	case ed25519.PublicKey:
		return ed25519.Verify(key, base, signature)
	case *ecdsa.PublicKey:
		return verifyECDSA(key, base, signature)
	case *rsa.PublicKey:
		if a == RSAv15SHA256 {
			sum := sha256.Sum256(base)
			return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
		}
		// RFC 9421 wants a salt of 64 bytes. Node's crypto takes the longest unless told otherwise, and libraries that leave
		// it at that sign so; the length is no secret and no choice of algorithm.
		sum := sha512.Sum512(base)
		return rsa.VerifyPSS(key, crypto.SHA512, sum[:], signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto}) == nil
	}
	return false
}

// ErrPublic says that nothing can be signed with a public key.
var ErrPublic = errors.New("a public key signs nothing")

// Sign returns the signature of a text: with the bytes of a shared secret, or with a private key, which must fit.
func (a Algorithm) Sign(key any, base []byte) ([]byte, error) {
	if !a.Fits(key) {
		return nil, fmt.Errorf("the key is not for %s", a)
	}
	switch key := key.(type) {
	case []byte:
		return MAC(key, base), nil
	case ed25519.PrivateKey:
		return ed25519.Sign(key, base), nil
	case *ecdsa.PrivateKey:
		return signECDSA(key, base)
	case *rsa.PrivateKey:
		if a == RSAv15SHA256 {
			sum := sha256.Sum256(base)
			return rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		}
		sum := sha512.Sum512(base)
		return rsa.SignPSS(rand.Reader, key, crypto.SHA512, sum[:], &rsa.PSSOptions{SaltLength: sha512.Size})
	}
	return nil, ErrPublic
}

// signECDSA returns r and s beside each other, each as long as the curve's order.
func signECDSA(key *ecdsa.PrivateKey, base []byte) ([]byte, error) {
	r, s, err := ecdsa.Sign(rand.Reader, key, curveDigest(key.Curve, base))
	if err != nil {
		return nil, err
	}
	half := (key.Curve.Params().BitSize + 7) / 8
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return signature, nil
}

// curveDigest hashes a text as the algorithm of the curve does.
func curveDigest(curve elliptic.Curve, base []byte) []byte {
	if curve == elliptic.P256() {
		sum := sha256.Sum256(base)
		return sum[:]
	}
	sum := sha512.Sum384(base)
	return sum[:]
}

// verifyECDSA checks a signature that is r and s beside each other, each as long as the curve's order.
func verifyECDSA(key *ecdsa.PublicKey, base, signature []byte) bool {
	half := (key.Curve.Params().BitSize + 7) / 8
	if len(signature) != 2*half {
		return false
	}
	return ecdsa.Verify(key, curveDigest(key.Curve, base), new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
}

// MAC returns the signature of the text with a shared secret: hmac-sha256.
func MAC(key, base []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(base)
	return h.Sum(nil)
}
