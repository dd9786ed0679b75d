package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
)

// maxIdempotencyKey is the length, in bytes, that receivers commonly store.
const maxIdempotencyKey = 255

// idempotencyKey is the same for every attempt at an event and for no other event:
//
//	billing:evt_1              a key in its source
//	billing#81985529216486895  an event without a key, or with one that others take over, by its
//	                           identifier in the journal
//	#5f2b...                   the SHA-256 of one of these that is longer than 255 bytes
//
// The source has neither : nor # in this form, so the first of them tells which it is.
func idempotencyKey(w *journal.Work) string {
	source := escape(w.Source, ":#")
	var key string
	if w.Key != "" && !journal.Coalesces(w.Key) {
		key = source + ":" + headerSafe(w.Key)
	} else {
		key = source + "#" + strconv.FormatInt(w.EventID, 10)
	}
	if len(key) > maxIdempotencyKey {
		sum := sha256.Sum256([]byte(key))
		key = "#" + hex.EncodeToString(sum[:])
	}
	return key
}

// headerSafe returns s as a header value can carry it: whatever is not visible ASCII, and the percent
// sign, is percent-encoded. It is undone by [net/url.PathUnescape].
func headerSafe(s string) string { return escape(s, "") }

// escape percent-encodes what is not visible ASCII, the percent sign, and the given characters.
func escape(s, also string) string {
	n := 0
	for i := range len(s) {
		if escaped(s[i], also) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := range len(s) {
		c := s[i]
		if !escaped(c, also) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func escaped(c byte, also string) bool {
	return c <= ' ' || c > '~' || c == '%' || strings.IndexByte(also, c) >= 0
}
