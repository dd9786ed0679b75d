package ingest

import (
	"net/http"
	"net/netip"
)

// PatternMatches reports whether a pattern for event types matches one.
func PatternMatches(text, eventType string) bool {
	return patterns([]string{text})[0].matches(eventType)
}

// Sender returns the address that a request comes from.
func Sender(trusted []netip.Prefix, remote string, h http.Header) (netip.Addr, bool) {
	return allowlist{trusted: trusted}.sender(&http.Request{RemoteAddr: remote, Header: h})
}
