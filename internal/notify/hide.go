package notify

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// hider takes what is secret out of texts of others: all of an address but its scheme, in whatever form it appears.
type hider struct {
	scheme string
	pieces *strings.Replacer
}

// hidden stands for what was taken out.
const hidden = "[hidden]"

// least is the length of the shortest part of an address that is taken out. What is shorter is no secret, and would take
// words apart.
const least = 4

// spoken are parts of addresses that shoutrrr prescribes. They are no secret, and without them its texts say nothing.
var spoken = []string{"hook", "http", "https", "shoutrrr", "telegram", "token", "webhook", "true", "false", "none", "json"}

// newHider returns what hides an address.
func newHider(address string) hider {
	scheme, rest, _ := strings.Cut(address, "://")
	scheme, _, _ = strings.Cut(scheme, "+")
	h := hider{scheme: scheme}
	parts := words(rest)
	if plain, err := url.PathUnescape(rest); err == nil {
		parts = append(parts, words(plain)...)
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, p := range parts {
		if strings.EqualFold(p, scheme) {
			continue // which is shown anyway, and texts name it
		}
		pairs = append(pairs, p, hidden, strings.ToLower(p), hidden, strings.ToUpper(p), hidden)
	}
	h.pieces = strings.NewReplacer(pairs...)
	return h
}

// words returns the parts of an address that may be secret.
func words(rest string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), func(w string) bool {
		return len(w) < least || slices.Contains(spoken, strings.ToLower(w))
	})
}

var (
	address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"']+`)
	random  = regexp.MustCompile(`[A-Za-z0-9+/_=-]{20,}`)
	again   = regexp.MustCompile(`\Q` + hidden + `\E([^\s"',;:]*\Q` + hidden + `\E)+`)
)

// maxShown is how much of somebody else's text is shown, in bytes.
const maxShown = 300

// text returns what may be shown of a text: in one line, without addresses, without parts of ours, and without what looks like a
// token, in which form ever it came back.
func (h hider) text(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = address.ReplaceAllString(s, hidden)
	s = h.pieces.Replace(s)
	s = random.ReplaceAllStringFunc(s, func(t string) string {
		if strings.ContainsFunc(t, unicode.IsDigit) {
			return hidden
		}
		return t
	})
	s = again.ReplaceAllString(s, hidden)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// error returns what may be shown of an error. Requests repeat their addresses around what is wrong.
func (h hider) error(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "its host is not known to the DNS"
		}
		return "its host could not be looked up in the DNS"
	}
	return h.text(err.Error())
}
