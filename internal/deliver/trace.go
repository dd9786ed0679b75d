package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// setTrace leaves the sender's trace context (https://www.w3.org/TR/trace-context/) in h if it is valid,
// and begins a trace otherwise. All attempts at an event are in the same trace, each with a parent of its
// own. It is marked as sampled, or an application that leaves that to its callers would record none.
func setTrace(h http.Header, idempotencyKey string) {
	if sent := h[traceparent]; len(sent) == 1 && validTrace(sent[0]) {
		return
	}
	delete(h, tracestate)
	sum := sha256.Sum256([]byte(idempotencyKey))
	parent := rand.Uint64() | 1 // zero is not valid
	var b [len("00-") + 32 + 1 + 16 + len("-01")]byte
	text := append(b[:0], "00-"...)
	text = hex.AppendEncode(text, sum[:16])
	text = append(text, '-')
	for shift := 60; shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[parent>>shift&15])
	}
	h[traceparent] = []string{string(append(text, "-01"...))}
}

// validTrace reports whether s is a traceparent: of version 00, or of a later one that begins like it.
func validTrace(s string) bool {
	const length = 55
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:length]
	switch {
	case version == "ff", version == "00" && len(s) != length, len(s) > length && s[length] != '-':
		return false
	case !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags):
		return false
	}
	return strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
