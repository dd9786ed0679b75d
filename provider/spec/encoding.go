package spec

import (
	"crypto"
	"crypto/sha1"
	_ "crypto/sha256" // for [crypto.SHA256]
	_ "crypto/sha512" // for [crypto.SHA512]
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

var hashes = map[Hash]crypto.Hash{SHA1: crypto.SHA1, SHA256: crypto.SHA256, SHA512: crypto.SHA512}

// function returns the hash function of that name.
func (h Hash) function() (crypto.Hash, error) {
	f, ok := hashes[h]
	if !ok {
		return 0, fault("hash", "there is no %q; use sha1, sha256 or sha512", h)
	}
	return f, nil
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
		text := strings.TrimPrefix(secret, "v1,")
		if _, public := publicText(secret); public {
			return nil, errOtherForm
		}
		key, err = decodeBase64(strings.TrimPrefix(text, "whsec_"), "is not base64 after whsec_")
	case KeyWhsecOnly:
		text, ok := strings.CutPrefix(strings.TrimPrefix(secret, "v1,"), "whsec_")
		if key, err = decodeBase64(text, ""); !ok || err != nil || len(key) == 0 {
			return nil, errOtherForm
		}
	case KeyWhpk:
		text, ok := publicText(secret)
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
		key, err = decodePEM(secret)
	default:
		return nil, fmt.Errorf("cannot be decoded: no form of key is called %q", string(f))
	}
	if err == nil && len(key) == 0 {
		err = errors.New("is empty")
	}
	return key, err
}

// publicText returns what follows whpk_ in a public key of Standard Webhooks, and whether the secret is one.
func publicText(secret string) (string, bool) {
	return strings.CutPrefix(strings.TrimPrefix(secret, "v1a,"), "whpk_")
}

// decodePEM returns the bytes in a block of PEM, or in what such a block has between its first and last line: senders
// show their keys without those, on one line or on several.
func decodePEM(text string) ([]byte, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		return block.Bytes, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("is not PEM; it begins with -----BEGIN PUBLIC KEY-----, or is the base64 that follows that line")
	}
	return key, nil
}

func decodeBase64(text, complaint string) ([]byte, error) {
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, errors.New(complaint)
	}
	return key, nil
}

// encodings has what each encoding is. Signatures are written in one spelling only.
var encodings = map[Encoding]struct {
	codec
	alphabet string // the characters that a signature may consist of
}{
	Hex:       {hexCodec{}, "0123456789abcdef"},
	Base64:    {base64.StdEncoding.Strict(), alphanumeric + "+/="},
	Base64URL: {base64.RawURLEncoding.Strict(), alphanumeric + "-_"},
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// codec is what package base64 has as methods.
type codec interface {
	EncodedLen(n int) int
	AppendEncode(dst, sum []byte) []byte
	DecodeString(text string) ([]byte, error)
}

type hexCodec struct{}

func (hexCodec) EncodedLen(n int) int                     { return hex.EncodedLen(n) }
func (hexCodec) AppendEncode(dst, sum []byte) []byte      { return hex.AppendEncode(dst, sum) }
func (hexCodec) DecodeString(text string) ([]byte, error) { return hex.DecodeString(text) }

// check returns what is wrong with an encoding that there is not.
func (e Encoding) check() error {
	if _, ok := encodings[e]; !ok {
		return fault("encoding", "there is no %q; use hex, base64 or base64url", e)
	}
	return nil
}

// append appends the encoded form of sum to dst.
func (e Encoding) append(dst, sum []byte) []byte { return encodings[e].AppendEncode(dst, sum) }

// describe names the shape of a signature of size characters, for error messages.
func (e Encoding) describe(size int) string {
	if e == Hex {
		return fmt.Sprintf("%d lower-case hexadecimal digits", size)
	}
	return fmt.Sprintf("%d characters of %s", size, e)
}

// decode returns the bytes of a signature, and whether the text is their only spelling.
func (e Encoding) decode(text string) ([]byte, bool) {
	sum, err := encodings[e].DecodeString(text)
	return sum, err == nil && string(e.append(nil, sum)) == text
}

// name is the encoding in a sentence.
func (e Encoding) name() string {
	if e == Hex {
		return "lower-case hexadecimal"
	}
	return string(e)
}
