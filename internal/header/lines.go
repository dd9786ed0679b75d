package header

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Stores keep headers as HTTP/1 field lines, each ended by CRLF. What follows is the only place that writes and reads
// that form.

var newlines = strings.NewReplacer("\r", " ", "\n", " ")

// Encode returns h as field lines, sorted by name, the values of a name in their order. Like the server of
// net/http it leaves out names that no field can have, and turns line breaks in values into spaces; all
// other bytes stay as they are.
func Encode(h http.Header) []byte {
	lines := []byte{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !ValidName(name) {
			continue
		}
		for _, value := range h[name] {
			lines = appendLine(lines, name, newlines.Replace(value))
		}
	}
	return lines
}

// appendLine appends one field. The value has no line break.
func appendLine(lines []byte, name, value string) []byte {
	lines = append(append(lines, name...), ": "...)
	return append(append(lines, value...), "\r\n"...)
}

// lineSize is how many bytes the line of a field takes.
func lineSize(name, value string) int { return len(name) + len(": \r\n") + len(value) }

// Decode returns what [Encode] was given, without what it left out. A line that is not a field is skipped.
func Decode(lines []byte) http.Header {
	h := http.Header{}
	for text := string(lines); text != ""; {
		var name, value string
		if name, value, text = cutLine(text); name != "" {
			h[name] = append(h[name], value)
		}
	}
	return h
}

// cutLine returns the first field of lines, and the lines behind it. The name is empty if the line is not a field. One
// space before the value is a part of the form, and may lack.
func cutLine(lines string) (name, value, rest string) {
	line, rest, _ := strings.Cut(lines, "\r\n")
	name, value, _ = strings.Cut(line, ":")
	if len(name) == len(line) || !ValidName(name) {
		return "", "", rest
	}
	return name, strings.TrimPrefix(value, " "), rest
}
