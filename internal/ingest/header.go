package ingest

import (
	"encoding/hex"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// withheld are the headers that are not kept with an event: those that describe one hop or the
// message's framing, and those that carry credentials or the addresses of proxies.
var withheld = map[string]bool{
	"Connection":        true,
	"Content-Length":    true,
	"Expect":            true,
	"Host":              true,
	"Keep-Alive":        true,
	"Te":                true,
	"Trailer":           true,
	"Transfer-Encoding": true,
	"Upgrade":           true,
	"Authorization":     true,
	"Cookie":            true,
	"Forwarded":         true,
}

// withheldPrefixes are families of such headers. Hookonce- is ours: see facts and package deliver.
var withheldPrefixes = []string{outgoing.OwnPrefix, "Proxy-", "X-Forwarded-"}

// encodeHeader returns the headers that an event keeps as HTTP/1 field lines. Content-Encoding and
// the provider's own headers stay as they came, because its signature is over the raw bytes.
// Lines of different names are in no particular order; values of one name keep theirs. Headers with the
// canonical names in secret hold one, and are left out.
func encodeHeader(h http.Header, secret []string) []byte {
	connection := h["Connection"]
	size := 0
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	lines := make([]byte, 0, size)
	for name, values := range h {
		if !kept(name) || slices.Contains(secret, name) || (connection != nil && named(connection, name)) {
			continue
		}
		for _, v := range values {
			if !oneLine(v) {
				continue
			}
			lines = append(lines, name...)
			lines = append(lines, ": "...)
			lines = append(lines, v...)
			lines = append(lines, "\r\n"...)
		}
	}
	return lines
}

// kept reports whether headers of this canonical name are stored. A name that is not a token can not
// come from a server, and would not survive as a line.
func kept(name string) bool {
	if name == "" || strings.ContainsAny(name, " \t\r\n:\x00") {
		return false
	}
	if strings.Contains(name, "_") {
		// Applications behind CGI, WSGI or Rack can not tell it from the name with dashes, and might
		// take it for one that we set.
		name = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if name == "Idempotency-Key" {
			return false
		}
	}
	if withheld[name] {
		return false
	}
	for _, p := range withheldPrefixes {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return true
}

// named reports whether a Connection header lists name, which makes it a header of this hop only.
func named(connection []string, name string) bool {
	for _, list := range connection {
		for option := range strings.SplitSeq(list, ",") {
			if textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(option)) == name {
				return true
			}
		}
	}
	return false
}

// oneLine reports whether a value can be written as one line. Servers refuse others already.
func oneLine(value string) bool { return !strings.ContainsAny(value, "\r\n\x00") }

// facts returns the header lines of an event, which come after those of its request: what an application that
// did not see the request's signature wants to know of it, and the journal has no use for. Nobody else's
// lines have these names (see kept).
func facts(ev *hookonce.Event) []byte {
	f := make(outgoing.Facts, 0, 256)
	f.Add(outgoing.ProviderHeader, ev.Provider)
	if ev.Key != "" {
		f.Add(outgoing.KeySignedHeader, strconv.FormatBool(ev.KeySigned))
	}
	if !ev.Rank.IsZero() {
		f.Add(outgoing.RankHeader, string(ev.Rank.Kind)+":"+strconv.FormatInt(ev.Rank.N, 10))
	}
	f.AddTime(outgoing.TimeHeader, ev.Time)
	f.Add(outgoing.ResourceHeader, ev.Resource)
	f.Add(outgoing.TenantHeader, ev.Tenant)
	f.Add(outgoing.DeliveryHeader, ev.Delivery)
	f.Add(outgoing.LogicalHeader, ev.Logical)
	f.Add(outgoing.DigestHeader, hex.EncodeToString(ev.Digest))
	return f
}
