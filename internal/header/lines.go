package header

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
)

var newlines = strings.NewReplacer("\r", " ", "\n", " ")

// Encode returns h as field lines, sorted by name, the values of a name in their order. Like the server of
// net/http it leaves out names that no field can have, and turns line breaks in values into spaces; all
// other bytes stay as they are.
func Encode(h http.Header) []byte {
	lines := []byte{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == "" || strings.ContainsAny(name, ": \t\r\n") {
			continue
		}
		for _, value := range h[name] {
			lines = append(lines, name...)
			lines = append(lines, ": "...)
			lines = append(lines, newlines.Replace(value)...)
			lines = append(lines, "\r\n"...)
		}
	}
	return lines
}

// Decode returns what Encode was given, without what Encode left out. A line that is not one of Encode's
// is skipped.
func Decode(lines []byte) http.Header {
	h := http.Header{}
	for line := range bytes.SplitSeq(lines, []byte("\r\n")) {
		if name, value, ok := strings.Cut(string(line), ": "); ok {
			h[name] = append(h[name], value)
		}
	}
	return h
}
