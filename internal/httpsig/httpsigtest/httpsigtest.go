// Package httpsigtest has keys for tests of HTTP message signatures: one of each kind, made anew in each process.
package httpsigtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"sync"

	"github.com/hookonce/hookonce/internal/httpsig"
)

// Secret is a shared secret.
const Secret = "a fake secret that both sides share"

// Pair is what one algorithm signs and verifies with.
type Pair struct {
	Algorithm httpsig.Algorithm
	// Private is the private key in PEM, and Public the public one. Of hmac-sha256 both are [Secret].
	Private, Public string
}

// Pairs returns a pair for each algorithm, in the order of [httpsig.Algorithms]. The two of RSA are the same.
var Pairs = sync.OnceValue(func() []Pair {
	var pairs []Pair
	for _, a := range httpsig.Algorithms {
		pairs = append(pairs, Pair{a, private(a), public(a)})
	}
	return pairs
})

// Of returns the pair for an algorithm.
func Of(a httpsig.Algorithm) Pair { return Pair{a, private(a), public(a)} }

func private(a httpsig.Algorithm) string {
	key := keys()[a]
	if key == nil {
		return Secret
	}
	return encode("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func public(a httpsig.Algorithm) string {
	key := keys()[a]
	if key == nil {
		return Secret
	}
	return encode("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key.Public())))
}

var keys = sync.OnceValue(func() map[httpsig.Algorithm]crypto.Signer {
	_, ed, err := ed25519.GenerateKey(nil)
	both := must(rsa.GenerateKey(rand.Reader, 2048))
	return map[httpsig.Algorithm]crypto.Signer{
		httpsig.Ed25519:         must(ed, err),
		httpsig.ECDSAP256SHA256: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		httpsig.ECDSAP384SHA384: must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		httpsig.RSAPSSSHA512:    both,
		httpsig.RSAv15SHA256:    both,
	}
})

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
