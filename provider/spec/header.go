package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"iter"
	"net/http"
	"strings"
)

// headerText returns the value of the header with that canonical name, and how many different values
// it has. With more than one the text is empty: there is no telling which one is meant.
func headerText(h http.Header, canonical string) (string, int) {
	return single(h[canonical])
}

// single returns the one value that all of values are.
func single(values []string) (string, int) {
	if len(values) == 0 {
		return "", 0
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return "", 2
		}
	}
	return values[0], 1
}

// entries yields the entries of a header's value without the white space around them.
func entries(line, split string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more; {
			entry := line
			if more = split != ""; more {
				entry, line, more = strings.Cut(line, split)
			}
			if !yield(strings.TrimSpace(entry)) {
				return
			}
		}
	}
}

// partText returns the rest of the entry that begins with prefix, and how many different ones there
// are, like headerText.
func partText(line, split, prefix string) (string, int) {
	text, n := "", 0
	for entry := range entries(line, split) {
		rest, ok := strings.CutPrefix(entry, prefix)
		if ok && n > 0 && rest != text {
			return "", 2
		}
		if ok {
			text, n = rest, 1
		}
	}
	return text, n
}

// entryText returns the entry with that number, from 0.
func entryText(line, split string, number int) string {
	for entry := range entries(line, split) {
		if number == 0 {
			return entry
		}
		number--
	}
	return ""
}

// equal compares two texts in a time that depends on neither, nor on their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}
