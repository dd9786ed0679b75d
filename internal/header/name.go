package header

import "strings"

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

// Rewritten reports whether a proxy takes the field of that name off a request, or gives it another value, before it
// forwards it: because it belongs to the connection, or because it is the proxy's to say.
// https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
func Rewritten(name string) bool {
	switch Fold(name) {
	case "connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
		"host", "content-length":
		return true
	}
	return Own(name) || Forwarded(name)
}
