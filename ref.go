package hookonce

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxKeyLen is the longest key, in bytes, that is kept as it is. A longer key is replaced by its
// SHA-256 (see [NormalKey]), because database indexes limit the size of a row.
const MaxKeyLen = 255

// Ref names a claim: a key inside the scope of one source. Two sources never share a claim, even
// when their providers use the same identifiers.
type Ref struct {
	// Source is the configured endpoint that the event came in through, such as "billing".
	Source string
	// Key identifies the event inside its source. The empty key means "unkeyed": the event cannot
	// be recognised when it comes again, and is passed through instead of being claimed.
	Key string
}

// String returns the reference in a form for logs: source/key.
func (r Ref) String() string { return r.Source + "/" + r.Key }

// JoinKey builds one key from several parts without ambiguity: every part is preceded by its
// length, so ("ab", "c") and ("a", "bc") differ. If any part is empty the result is the empty key,
// because a key that lacks a required part would collapse different events into one.
// A single part is returned unchanged.
func JoinKey(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	size := 0
	for _, p := range parts {
		size += len("255:") + len(p)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range parts {
		if p == "" {
			return ""
		}
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return b.String()
}

// NormalKey returns the form of key that every store can hold and compare: valid UTF-8, printable,
// at most [MaxKeyLen] bytes. A key that is not in this form is replaced by "sha256:" and the
// hexadecimal SHA-256 of its bytes, so different keys stay different. A key that itself starts with
// "sha256:" is replaced as well, so that nobody can send the digest of another key; NormalKey is
// therefore applied exactly once, where a key is extracted. The empty key stays empty.
func NormalKey(key string) string {
	if wellFormed(key) && !strings.HasPrefix(key, digestPrefix) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// unkeyedPrefix begins the keys of claims that were made for events without one. No key that was extracted
// begins so.
const unkeyedPrefix = digestPrefix + "unkeyed:"

// Validate returns an error that wraps [ErrInvalidRef] unless the source is present and both parts
// are valid UTF-8, free of control characters and at most [MaxKeyLen] bytes. An empty key is valid.
func (r Ref) Validate() error {
	switch {
	case r.Source == "":
		return fmt.Errorf("%w: the source is empty", ErrInvalidRef)
	case !wellFormed(r.Source):
		return fmt.Errorf("%w: the source is longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, MaxKeyLen)
	case !wellFormed(r.Key):
		return fmt.Errorf("%w: the key is longer than %d bytes, not UTF-8, or has control characters; pass it through NormalKey", ErrInvalidRef, MaxKeyLen)
	}
	return nil
}

func wellFormed(s string) bool {
	if len(s) > MaxKeyLen || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, unicode.IsControl) < 0
}
