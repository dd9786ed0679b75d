// Package outgoing is what the requests of the gateway and of relays have in common: where they go, how they are
// signed, as Standard Webhooks describe it (https://www.standardwebhooks.com) and beyond, and how much is read of
// their answers. What an answer means is decided by package retry.
package outgoing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
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

// Sign sets the headers that sign a request: [header.WebhookSignature] has one signature per key, each over the
// identifier, the time and the body, and [header.HookonceSignature] one per key over what the other headers say,
// bound to the same identifier and time, and so to the body. Whoever carries the request could otherwise send it
// again under another key. All other headers must be set.
func Sign(h http.Header, keys [][]byte, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	values := []string{id, timestamp, signatures(keys, []byte(id+"."+timestamp+"."), body), signatures(keys, factsText(id, timestamp, h))}
	h[header.WebhookID], h[header.WebhookTimestamp] = values[0:1:1], values[1:2:2]
	h[header.WebhookSignature], h[header.HookonceSignature] = values[2:3:3], values[3:4:4]
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

// VerifyFacts returns which of the keys, from 1, made one of the signatures in value, as [Sign] makes them of headers;
// 0 for none of them.
func VerifyFacts(keys [][]byte, id, timestamp string, h http.Header, value string) int {
	return verify(keys, value, factsText(id, timestamp, h))
}

// factsText is what is signed: a line that says what it is, one each with the message's identifier and time,
// and one for each header, in the order of their names. A body that is signed comes after an identifier
// and a time with points between, and no header has line breaks, so neither text can pass for the other.
func factsText(id, timestamp string, h http.Header) []byte {
	text := append(make([]byte, 0, 1024), "hookonce-headers-v1\n"+id+"\n"+timestamp+"\n"...)
	for _, name := range factNames(h) {
		for _, value := range h[name] {
			text = append(appendLower(text, name), ':')
			text = append(text, value...)
			text = append(text, '\n')
		}
	}
	return text
}

// factNames returns the names of the headers that say what a request is about, in their order.
func factNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		if name == header.IdempotencyKey || strings.HasPrefix(name, header.OwnPrefix) && name != header.HookonceSignature {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// appendLower appends a name, which has no letters but those of ASCII, in lower case.
func appendLower(text []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		text = append(text, c)
	}
	return text
}
