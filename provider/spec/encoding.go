package spec

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"strings"

	"golang.org/x/text/unicode/norm"
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

// errOtherForm says that a secret belongs to another way of signing of the same provider.
var errOtherForm = errors.New("has the form of another way of signing")

// decode turns a secret's text into a key. Errors never contain any of the text.
func (f KeyForm) decode(secret string) ([]byte, error) {
	switch {
	case secret == "":
		return nil, errors.New("is empty")
	case strings.TrimSpace(secret) != secret && f != KeyPEM:
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
		if strings.HasPrefix(secret, "whpk_") {
			return nil, errOtherForm
		}
		key, err = decodeBase64(strings.TrimPrefix(secret, "whsec_"), "is not base64 after whsec_")
	case KeyWhpk:
		text, ok := strings.CutPrefix(secret, "whpk_")
		if !ok {
			return nil, errOtherForm
		}
		key, err = decodeBase64(text, "is not base64 after whpk_")
	case KeySHA1:
		sum := sha1.Sum([]byte(secret))
		key = sum[:]
	case KeyNFKD:
		key = norm.NFKD.Bytes([]byte(secret))
	case KeyPEM:
		block, _ := pem.Decode([]byte(secret))
		if block == nil {
			return nil, errors.New("is not PEM; it begins with -----BEGIN PUBLIC KEY-----")
		}
		key = block.Bytes
	default:
		return nil, fmt.Errorf("cannot be decoded: no form of key is called %q", string(f))
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

// decode returns the bytes of a signature, and whether the text is their only spelling.
func (e Encoding) decode(text string) ([]byte, bool) {
	var sum []byte
	var err error
	switch e {
	case Base64:
		sum, err = base64.StdEncoding.Strict().DecodeString(text)
	case Base64URL:
		sum, err = base64.RawURLEncoding.Strict().DecodeString(text)
	default:
		sum, err = hex.DecodeString(text)
	}
	return sum, err == nil && string(e.append(nil, sum)) == text
}

// name is the encoding in a sentence.
func (e Encoding) name() string {
	if e == Hex {
		return "lower-case hexadecimal"
	}
	return string(e)
}
