// Package outgoing knows what the requests of the gateway and of relays have in common: signatures as
// Standard Webhooks describe them (https://www.standardwebhooks.com), and what an answer says about the time of the next request.
package outgoing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// scheme begins a signature that is an HMAC.
const scheme = "v1,"

// secretPrefix begins a secret whose bytes are written in base64.
const secretPrefix = "whsec_"

// Keys returns the bytes of the secrets. Errors do not repeat them.
func Keys(secrets []string) ([][]byte, error) {
	var keys [][]byte
	for _, s := range secrets {
		key := []byte(s)
		if encoded, ok := strings.CutPrefix(s, secretPrefix); ok {
			var err error
			if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return nil, errors.New("a secret is not base64 after whsec_: copy it whole, with = at its end")
			}
		}
		if len(key) == 0 {
			return nil, errors.New("a secret is empty: remove it or write one of 24 random bytes or more")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Sign returns the values of the headers that sign a body: one signature per key, each over the
// identifier, the time and the body.
func Sign(keys [][]byte, id string, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	return timestamp, signatures(keys, []byte(id+"."+timestamp+"."), body)
}

// Verify returns which of the keys, from 1, made one of the signatures in value, as [Sign] makes them; 0 for none
// of them.
func Verify(keys [][]byte, id, timestamp string, body []byte, value string) int {
	return verify(keys, value, []byte(id+"."+timestamp+"."), body)
}

func verify(keys [][]byte, value string, text ...[]byte) int {
	for i, key := range keys {
		want := mac(key, text)
		for signature := range strings.SplitSeq(value, " ") {
			encoded, ok := strings.CutPrefix(signature, scheme)
			if got, err := base64.StdEncoding.DecodeString(encoded); ok && err == nil && hmac.Equal(got, want) {
				return i + 1
			}
		}
	}
	return 0
}

// signatures returns one signature per key over the text, which comes in parts.
func signatures(keys [][]byte, text ...[]byte) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(scheme + base64.StdEncoding.EncodeToString(mac(key, text)))
	}
	return b.String()
}

func mac(key []byte, text [][]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range text {
		h.Write(part)
	}
	return h.Sum(nil)
}
