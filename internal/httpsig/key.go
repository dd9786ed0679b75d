package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Key is a key that signs or verifies, with the algorithm that it is for and the id that its signatures carry. The zero
// Key is none.
type Key struct {
	// ID is the parameter keyid of its signatures.
	ID string
	// Algorithm follows from the kind of key.
	Algorithm Algorithm

	material any // a crypto.Signer, a public key, or the bytes of a shared secret
}

// Format writes nothing of the key, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "{key %s, %s}", k.ID, k.Algorithm) }

// MarshalText is Format for JSON and structured logs.
func (k Key) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", k), nil }

// Shared reports whether the key is a secret that both sides have.
func (k Key) Shared() bool { return k.Algorithm == HMACSHA256 }

// Sign returns the signature of a text. The key must be one of [SigningKey].
func (k Key) Sign(base []byte) ([]byte, error) { return k.Algorithm.Sign(k.material, base) }

// Verify reports whether the key, or the private key that belongs to it, made the signature of a text.
func (k Key) Verify(base, signature []byte) bool {
	return k.Algorithm.Verify(k.material, base, signature)
}

// SigningKey reads what signatures are made with: a private key in PEM, whose kind says which algorithm it is for
// (RSA keys sign as rsa-pss-sha512), or a shared secret, byte for byte, of hmac-sha256. Its errors follow the name of
// what is read, and repeat nothing of it.
func SigningKey(id, text string) (Key, error) {
	if !IsPEM(text) {
		return sharedKey(id, text)
	}
	key, err := PrivateKey(text)
	if err != nil {
		return Key{}, err
	}
	return newKey(id, key)
}

// VerifyingKey reads what signatures are verified with: a public key in PEM, or a shared secret. See [SigningKey].
func VerifyingKey(id, text string) (Key, error) {
	if !IsPEM(text) {
		return sharedKey(id, text)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return Key{}, errBrokenPEM
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	switch {
	case err == nil:
		return newKey(id, key)
	case strings.Contains(block.Type, "PRIVATE KEY"):
		return Key{}, errors.New("is a private key, which belongs to the sender alone; give the public key")
	}
	return Key{}, errors.New("is no public key; its block begins with -----BEGIN PUBLIC KEY-----")
}

// IsPEM reports whether a text is meant to be PEM.
func IsPEM(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") }

// IsKey reports whether a text is a public or a private key in one of the forms that they come in: PEM, also with something in
// front of it, the base64 or hexadecimal digits of one without its lines, a JSON Web Key or a set of them, or a line of OpenSSH.
// The 32 bytes of an Ed25519 key by themselves look like any secret, and are not seen.
func IsKey(text string) bool {
	text = strings.Trim(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"), "\"'` \t\r\n")
	var jwk struct {
		Type string            `json:"kty"`
		Keys []json.RawMessage `json:"keys"`
	}
	switch {
	case strings.Contains(text, "-----BEGIN "):
		return true
	case strings.HasPrefix(text, "ssh-"), strings.HasPrefix(text, "ecdsa-sha2-"), strings.HasPrefix(text, "sk-ssh-"):
		return true
	case json.Unmarshal([]byte(text), &jwk) == nil && (jwk.Type != "" || jwk.Keys != nil):
		return true
	}
	return slices.ContainsFunc(decoded(strings.Join(strings.Fields(text), "")), isDER)
}

// decoded returns what a text can be read as.
func decoded(text string) (all [][]byte) {
	for _, decode := range []func(string) ([]byte, error){
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString,
	} {
		if der, err := decode(text); err == nil {
			all = append(all, der)
		}
	}
	return all
}

// isDER reports whether the bytes are a key as it stands in PEM.
func isDER(der []byte) bool {
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKIXPublicKey, x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PublicKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseCertificate(der) },
	} {
		if _, err := parse(der); err == nil {
			return true
		}
	}
	return false
}

// standardPrefix begins the secrets of Standard Webhooks, in which base64 follows it.
const standardPrefix = "whsec_"

// minShared is the least length of a shared secret, in bytes: whoever has one signature can try shorter ones.
const minShared = 16

func sharedKey(id, text string) (Key, error) {
	switch {
	case text == "":
		return Key{}, errors.New("is empty")
	case IsKey(text):
		return Key{}, errors.New("is a key in another form than PEM, or has something in front of it or around it, and would be taken for a shared secret; everybody has a public key and could sign with it. Give it in PEM, which begins with -----BEGIN")
	case strings.HasPrefix(text, standardPrefix):
		return Key{}, errors.New("begins with " + standardPrefix + " as secrets of Standard Webhooks do, and a shared secret is taken byte for byte here; write another one, as openssl rand -hex 32 makes it")
	case len(text) < minShared:
		return Key{}, fmt.Errorf("is shorter than %d bytes and could be guessed; write one as openssl rand -hex 32 makes it", minShared)
	}
	return Key{ID: id, Algorithm: HMACSHA256, material: []byte(text)}, nil
}

func newKey(id string, key any) (Key, error) {
	for _, a := range Algorithms {
		if a.Fits(key) {
			return Key{ID: id, Algorithm: a, material: key}, nil
		}
	}
	return Key{}, errors.New("is a key that no algorithm is for; use Ed25519, ECDSA on P-256 or P-384, or RSA of at least 2048 bits")
}

var errBrokenPEM = errors.New("begins like PEM and is none; copy it whole, with its line breaks, from -----BEGIN to the end of the line -----END")

// PrivateKey reads a private key in PEM: PKCS #8, or the older forms of RSA and EC keys.
func PrivateKey(text string) (crypto.Signer, error) {
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errBrokenPEM
		}
		switch block.Type {
		case "EC PARAMETERS": // openssl ecparam writes it before the key
			continue
		case "PUBLIC KEY", "RSA PUBLIC KEY":
			return nil, errors.New("is a public key, with which nothing can be signed; give the private key that it belongs to")
		case "CERTIFICATE":
			return nil, errors.New("is a certificate, with which nothing can be signed; give the private key that it belongs to")
		case "ENCRYPTED PRIVATE KEY":
			return nil, errEncrypted
		}
		if strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return nil, errEncrypted
		}
		return privateKey(block)
	}
}

var errEncrypted = errors.New("is a private key that is encrypted, and there is no passphrase for it here; write it without: openssl pkey -in key.pem -out plain.pem")

func privateKey(block *pem.Block) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	switch block.Type {
	case "PRIVATE KEY":
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, errors.New("is PEM, and no private key; its block begins with -----BEGIN PRIVATE KEY-----")
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("is no private key that can be read here; make one with openssl genpkey -algorithm ed25519")
	}
	return signer, nil
}

// public returns what verifies the signatures that are made with a key: of a private key its public one, else the key
// itself.
func public(key any) any {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		return &key.PublicKey
	case *rsa.PrivateKey:
		return &key.PublicKey
	case ed25519.PrivateKey:
		return key.Public()
	}
	return key
}
