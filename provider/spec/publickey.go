package spec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
)

// publicMatcher matches signatures that were made with a private key.
type publicMatcher struct {
	encoding Encoding
	keyed[verifyFunc]
}

// verifyFunc reports whether sig is the signature of the message.
type verifyFunc func(message, sig []byte) bool

func newPublicMatcher(spec Verify, own Settings) (matcher, error) {
	if err := spec.Encoding.check(); err != nil {
		return nil, err
	}
	hash, err := spec.Hash.function()
	if err != nil {
		return nil, err
	}
	keys, err := newKeyed(own.Secrets, func(text string) (verifyFunc, error) {
		der, err := spec.Key.decode(text)
		if err != nil {
			return nil, err
		}
		return newVerifyFunc(spec.Kind, hash, der)
	})
	return &publicMatcher{spec.Encoding, keys}, err
}

// newVerifyFunc reads a public key: in DER, or the 32 bytes themselves for Ed25519.
func newVerifyFunc(k Kind, hash crypto.Hash, der []byte) (verifyFunc, error) {
	if k == Ed25519 && len(der) == ed25519.PublicKeySize {
		return verifyEd25519(der), nil
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, noPublicKey(der)
	}
	switch key := key.(type) {
	case ed25519.PublicKey:
		if k == Ed25519 {
			return verifyEd25519(key), nil
		}
	case *ecdsa.PublicKey:
		if k == ECDSA && key.Curve == elliptic.P256() {
			return func(message, sig []byte) bool { return ecdsa.VerifyASN1(key, digestWith(hash, message), sig) }, nil
		}
	case *rsa.PublicKey:
		if k == RSA && key.Size() >= 2048/8 {
			return func(message, sig []byte) bool {
				return rsa.VerifyPKCS1v15(key, hash, digestWith(hash, message), sig) == nil
			}, nil
		}
	}
	return nil, fmt.Errorf("is a public key of another kind than %s (for rsa, of at least 2048 bits)", k)
}

var errPrivate = errors.New("is a private key, which belongs to the sender alone; give the public key")

// noPublicKey says what is wrong with a key that is none.
func noPublicKey(der []byte) error {
	_, pkcs8 := x509.ParsePKCS8PrivateKey(der)
	_, pkcs1 := x509.ParsePKCS1PrivateKey(der)
	_, sec1 := x509.ParseECPrivateKey(der)
	if pkcs8 == nil || pkcs1 == nil || sec1 == nil {
		return errPrivate
	}
	return errors.New("is not a public key")
}

func verifyEd25519(key ed25519.PublicKey) verifyFunc {
	return func(message, sig []byte) bool { return ed25519.Verify(key, message, sig) }
}

func digestWith(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	h.Write(message)
	return h.Sum(nil)
}

func (m *publicMatcher) wellFormed(sig string) bool {
	_, ok := m.encoding.decode(sig)
	return ok && sig != ""
}

func (m *publicMatcher) shape() string { return m.encoding.name() }

func (m *publicMatcher) match(v *verifier, r *reading, line string) (int, error) {
	message := v.message(r)
	return m.find(r.req.Now, func(verify verifyFunc) bool {
		for sig := range v.carrier.signatures(line) {
			if sum, ok := m.encoding.decode(sig); ok && verify(message, sum) {
				return true
			}
		}
		return false
	}), nil
}

func (m *publicMatcher) seal(*verifier, *reading, int) (string, error) {
	return "", errPrivateKey
}
