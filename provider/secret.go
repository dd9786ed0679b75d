package provider

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// new returns the constructor of the hash function, nil if there is none of that name.
func (h Hash) new() func() hash.Hash {
	switch h {
	case SHA1:
		return sha1.New
	case SHA256:
		return sha256.New
	case SHA512:
		return sha512.New
	}
	return nil
}

// decode turns a secret's text into a key. Errors never contain any of the text.
func (f KeyForm) decode(secret string) ([]byte, error) {
	switch {
	case secret == "":
		return nil, errors.New("is empty")
	case strings.TrimSpace(secret) != secret:
		return nil, errors.New("begins or ends with white space; remove it")
	}
	var key []byte
	var err error
	switch f {
	case KeyUTF8:
		key = []byte(secret)
	case KeyHex:
		if key, err = hex.DecodeString(secret); err != nil {
			return nil, errors.New("is not hexadecimal")
		}
	case KeyBase64:
		key, err = decodeBase64(secret, "is not base64")
	case KeyWhsec:
		key, err = decodeBase64(strings.TrimPrefix(secret, "whsec_"), "is not base64 after whsec_")
	default:
		return nil, fmt.Errorf("can not be decoded: no form of key is called %q", string(f))
	}
	if err == nil && len(key) == 0 {
		err = errors.New("is empty")
	}
	return key, err
}

func decodeBase64(text, complaint string) ([]byte, error) {
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, errors.New(complaint)
	}
	return key, nil
}

// size returns the length of the encoded form of n bytes; zero for an unknown encoding.
func (e Encoding) size(n int) int {
	switch e {
	case Hex:
		return hex.EncodedLen(n)
	case Base64:
		return base64.StdEncoding.EncodedLen(n)
	case Base64URL:
		return base64.RawURLEncoding.EncodedLen(n)
	}
	return 0
}

// append appends the encoded form of sum to dst.
func (e Encoding) append(dst, sum []byte) []byte {
	switch e {
	case Base64:
		return base64.StdEncoding.AppendEncode(dst, sum)
	case Base64URL:
		return base64.RawURLEncoding.AppendEncode(dst, sum)
	}
	return hex.AppendEncode(dst, sum)
}

// alphabet returns the characters that a signature may consist of.
func (e Encoding) alphabet() string {
	const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	switch e {
	case Base64:
		return alphanumeric + "+/="
	case Base64URL:
		return alphanumeric + "-_"
	}
	return "0123456789abcdef"
}

// describe names the shape of a signature of size characters, for error messages.
func (e Encoding) describe(size int) string {
	if e == Hex {
		return fmt.Sprintf("%d lower-case hexadecimal digits", size)
	}
	return fmt.Sprintf("%d characters of %s", size, e)
}

// macs makes HMACs under one secret. Making one anew costs allocations and two blocks of hashing, so
// used ones are kept. Safe for concurrent use.
type macs struct{ pool sync.Pool }

// mac is an HMAC with its scratch space.
type mac struct {
	hash.Hash
	scratch []byte
	encoded []byte
}

func newMACs(newHash func() hash.Hash, key []byte) *macs {
	return &macs{sync.Pool{New: func() any { return &mac{Hash: hmac.New(newHash, key)} }}}
}

func (m *macs) get() *mac {
	h := m.pool.Get().(*mac)
	h.Reset()
	return h
}

func (m *macs) put(h *mac) { m.pool.Put(h) }

// writeString feeds s to the HMAC.
func (m *mac) writeString(s string) {
	m.scratch = append(m.scratch[:0], s...)
	m.Write(m.scratch)
}

// sum returns the HMAC of everything written, encoded. It is valid until the mac is put back.
func (m *mac) sum(e Encoding) []byte {
	m.scratch = m.Sum(m.scratch[:0])
	m.encoded = e.append(m.encoded[:0], m.scratch)
	return m.encoded
}
