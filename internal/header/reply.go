package header

import (
	"fmt"
	"net/textproto"
	"strings"
)

// CheckReply returns why the reply to a handshake cannot set a header of that name, nil if it can: one that begins with
// X- or Webhook-, and that no browser and no proxy on the way back acts on.
func CheckReply(name string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !ValidName(name):
		return fmt.Errorf("%q is not the name of a header; write letters, digits and dashes", name)
	case !strings.HasPrefix(canonical, "X-") && !strings.HasPrefix(canonical, "Webhook-"):
		return fmt.Errorf("%s cannot be set by the reply to a handshake; only names that begin with X- or Webhook- can", canonical)
	}
	for _, family := range obeyed {
		if strings.HasPrefix(canonical, family) {
			return fmt.Errorf("%s cannot be set by the reply to a handshake: browsers or proxies act on it", canonical)
		}
	}
	return nil
}

// obeyed are beginnings of names that proxies (nginx, Apache, lighttpd, LiteSpeed, Perlbal) and browsers act on in an answer.
var obeyed = []string{
	"X-Accel-", "X-Sendfile", "X-Lighttpd-", "X-Litespeed-", "X-Reproxy-", "X-Proxy-", "X-Content-", "X-Dns-", "X-Download-", "X-Frame-", "X-Permitted-",
	"X-Robots-", "X-Ua-", "X-Webkit-", "X-Xss-",
}

// Visible reports whether a text is one word of at most 1024 visible ASCII characters: what a stranger chose can be the
// value of a header only if it cannot be taken for more than one.
func Visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= 1024
}
