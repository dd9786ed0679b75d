package deliver

import (
	"net/http"
	"net/textproto"
	"strings"
)

// notForwarded are headers that belong to one connection. They are left out when an event is stored;
// an event stored by other means must not break the framing of ours.
var notForwarded = map[string]bool{
	"Connection":          true,
	"Content-Length":      true,
	"Expect":              true,
	"Host":                true,
	"Keep-Alive":          true,
	"Proxy-Authenticate":  true,
	"Proxy-Authorization": true,
	"Proxy-Connection":    true,
	"Te":                  true,
	"Trailer":             true,
	"Transfer-Encoding":   true,
	"Upgrade":             true,
}

// ownHeaders is how many headers are added to the stored ones.
const ownHeaders = 7

// decodeHeader reads HTTP/1 field lines, each ended by CRLF. A line that is not one is skipped: it
// could not be sent. The result has room for our own headers.
func decodeHeader(lines []byte) http.Header {
	text := string(lines)
	n := strings.Count(text, "\r\n")
	h := make(http.Header, n+ownHeaders)
	values := make([]string, 0, n)
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || !isFieldValue(value) {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if notForwarded[name] {
			continue
		}
		value = strings.Trim(value, " \t")
		if more, ok := h[name]; ok {
			h[name] = append(more, value)
			continue
		}
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return h
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func tokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isFieldValue reports whether s has no control character except tabs.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
