package outgoing

import "strings"

// HeaderSafe returns s as a header value can carry it: whatever is not visible ASCII, and the percent
// sign, is percent-encoded. It is undone by [net/url.PathUnescape].
func HeaderSafe(s string) string { return Escape(s, "") }

// Escape percent-encodes what is not visible ASCII, the percent sign, and the given characters.
func Escape(s, also string) string {
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
