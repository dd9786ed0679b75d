package outgoing

import (
	"net/http"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// SignFacts returns the value of [header.HookonceSignature]: one signature per key over what the headers say
// about the event, bound to the message whose identifier and time are given, and so to the body that [Sign]
// signed with them. Whoever carries a delivery could otherwise send it again under another key.
func SignFacts(keys [][]byte, id, timestamp string, h http.Header) string {
	return signatures(keys, factsText(id, timestamp, h))
}

// VerifyFacts returns which of the keys, from 1, made one of the signatures in value, as [SignFacts] makes them;
// 0 for none of them.
func VerifyFacts(keys [][]byte, id, timestamp string, h http.Header, value string) int {
	return verify(keys, value, factsText(id, timestamp, h))
}

// factsText is what is signed: a line that says what it is, one each with the message's identifier and time,
// and one for each header, in the order of their names. A body that is signed comes after an identifier
// and a time with points between, and no header has line breaks, so neither text can pass for the other.
func factsText(id, timestamp string, h http.Header) []byte {
	names := make([]string, 0, len(h))
	for name := range h {
		if name == header.IdempotencyKey || strings.HasPrefix(name, header.OwnPrefix) && name != header.HookonceSignature {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := append(make([]byte, 0, 1024), "hookonce-headers-v1\n"+id+"\n"+timestamp+"\n"...)
	for _, name := range names {
		for _, value := range h[name] {
			text = append(text, strings.ToLower(name)...)
			text = append(text, ':')
			text = append(text, value...)
			text = append(text, '\n')
		}
	}
	return text
}
