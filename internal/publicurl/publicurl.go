// Package publicurl says what the address can be under which a provider calls an endpoint, as it is registered there.
package publicurl

import (
	"net/url"
	"strings"
)

// Rule is what [Valid] asks for, for errors. They leave the URL out: it may hold a password or a token.
const Rule = "an absolute http or https URL without a fragment"

// Valid reports whether requests can have been sent to the URL. A fragment never is.
func Valid(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.Contains(s, "#")
}
