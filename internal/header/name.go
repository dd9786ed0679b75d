package header

import (
	"fmt"
	"iter"
	"net/http"
	"net/textproto"
	"strings"
)

// ValidName reports whether a text can be the name of a header: a token, as RFC 9110 has it in section 5.6.2.
func ValidName(name string) bool {
	for i := range len(name) {
		if !letter(name[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", name[i]) < 0 {
			return false
		}
	}
	return name != ""
}

// ValidValue reports whether a text can be the value of a header: it has no control character except tabs.
func ValidValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// letter reports whether c is a letter or a digit.
func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Fold returns the name as it is for applications that hear of header fields in variables: under CGI, and so in WSGI,
// Rack and PHP, X-Tenant and x_tenant are both HTTP_X_TENANT, and some servers make the same of a dot. Two names are
// twins if they differ, but not when folded. https://www.rfc-editor.org/rfc/rfc3875#section-4.1.18
func Fold(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return '-'
	}, name)
}

// Own reports whether the name is one under which only hookonce tells an application something, or a twin of such.
func Own(name string) bool { return strings.HasPrefix(Fold(name), "hookonce-") }

// Forwarded reports whether the name is one under which a proxy says for whom it forwards a request, or a twin of such.
func Forwarded(name string) bool {
	switch Fold(name) {
	case "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto":
		return true
	}
	return false
}

// hopByHop are the headers that belong to one connection, or to the framing of one message.
var hopByHop = set(
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
)

// HopByHop reports whether a header of that canonical name belongs to one connection, or to the framing of one message.
// https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
func HopByHop(name string) bool { return hopByHop[name] }

// DropUpgrade takes out of a header that is handed on that its sender asks for another protocol: a receiver that takes HTTP/2 on the
// connection would be sent requests that nobody has looked at.
func DropUpgrade(h http.Header) {
	for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
		delete(h, name)
	}
}

// OfConnection returns the names that the header Connection lists, as they are spelled there: the request or the
// answer asks for these to be taken off by whoever hands it on.
func OfConnection(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range h["Connection"] {
			for option := range strings.SplitSeq(line, ",") {
				if option = textproto.TrimString(option); option != "" && !yield(option) {
					return
				}
			}
		}
	}
}

// ConnectionLists reports whether the header Connection lists a canonical name.
func ConnectionLists(h http.Header, name string) bool {
	for option := range OfConnection(h) {
		if textproto.CanonicalMIMEHeaderKey(option) == name {
			return true
		}
	}
	return false
}

// Rewritten reports whether a proxy takes the field of that name off a request, or gives it another value, before it
// forwards it: because it belongs to the connection, or because it is the proxy's to say.
func Rewritten(name string) bool {
	return HopByHop(textproto.CanonicalMIMEHeaderKey(Fold(name))) || Own(name) || Forwarded(name)
}

// setByHookonce are the folded names of the headers that every delivery has from us, besides our own.
var setByHookonce = set("idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "traceparent", "tracestate")

// CheckSent returns why no request can be given a header of that name; nil if one can.
func CheckSent(name string) error {
	switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
	case !ValidName(name):
		return fmt.Errorf("%q cannot be the name of a header; write letters, digits and dashes", name)
	case HopByHop(canonical):
		return fmt.Errorf("the header %s belongs to the connection, and HTTP sets it; remove it", canonical)
	}
	return nil
}

// CheckSet returns why nobody can have a header of that name, in any spelling, added to deliveries; nil if one can. It
// goes by the names that are taken, and by their twins, which some applications would read in their place.
func CheckSet(name string) error {
	if Own(name) || setByHookonce[Fold(name)] {
		return fmt.Errorf("the header %s is set by hookonce; remove it", textproto.CanonicalMIMEHeaderKey(name))
	}
	return CheckSent(name)
}

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}
