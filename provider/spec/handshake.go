package spec

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// maxEcho is the longest challenge, in bytes, that is answered.
const maxEcho = 1024

// handshake is a [Handshake] in compiled form.
type handshake struct {
	Handshake
	when    []match
	echo    *value
	pattern *regexp.Regexp
	over    []value

	token, url string    // those of the [Settings]
	first      *verifier // answers what nobody signed
}

type match struct {
	Match
	value value
}

// newHandshake compiles a handshake whose defaults are filled in.
func newHandshake(s Handshake, in *layout, verifiers []verifier, settings Settings) (h handshake, err error) {
	h = handshake{Handshake: s, token: settings.Token, url: settings.URL, first: &verifiers[0]}
	kinds := []kind{kindQuery, kindForm, kindHeader, kindJSON}
	for i, m := range s.When {
		v, err := in.fact(m.Value, kinds...)
		if err != nil {
			return h, within(fmt.Sprintf("when[%d]", i), err)
		}
		h.when = append(h.when, match{m, v})
	}
	if s.Echo != "" {
		v, err := in.fact(s.Echo, kinds...)
		if err != nil {
			return h, within("echo", err)
		}
		h.echo = &v
	}
	if err := h.inert(); err != nil {
		return h, err
	}
	if h.pattern, err = compilePattern(s.Pattern); err != nil {
		return h, err
	}
	if h.Method == http.MethodPost && len(h.when) == 0 {
		return h, fault("when", "is empty: every event would be taken for a handshake")
	}
	return h, h.bindCode(verifiers)
}

// handshakeMethods are the methods with which a handshake may be asked for.
var handshakeMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut}

// inert refuses answers that a browser would run: the challenge is what a stranger wrote.
func (h *handshake) inert() error {
	kind, _, _ := strings.Cut(h.ContentType, ";")
	switch {
	case !slices.Contains(handshakeMethods, h.Method):
		return fault("method", "there is no %q; use GET, HEAD, OPTIONS, POST or PUT", h.Method)
	case h.Status < 200 || h.Status > 299:
		return fault("status", "is %d; a challenge is answered with 200 to 299", h.Status)
	case h.Body != "" && kind != "text/plain" && kind != "application/json":
		return fault("content_type", "is %q; what a stranger wrote goes back as text/plain or application/json only", h.ContentType)
	}
	for name, text := range h.Header {
		if err := header.CheckReply(name); err != nil {
			return within("header", err)
		}
		if !header.Visible(text) {
			return fault("header."+name, "is %q; the value of a header is one word of visible ASCII characters", text)
		}
	}
	return nil
}

func compilePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	p, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return nil, fault("pattern", "%v", err)
	}
	return p, nil
}

// applies reports whether the request is this handshake. A wrong token refuses it.
func (h *handshake) applies(r *reading) (bool, error) {
	tokens := true
	for i := range h.when {
		m := &h.when[i]
		text := r.get(&m.value)
		switch {
		case m.Token:
			tokens = tokens && h.token != "" && equal(text, h.token)
		case text == "" || m.Is != "" && text != m.Is:
			return false, nil
		}
	}
	if !tokens {
		return false, &hookonce.RejectError{
			Reason: hookonce.ReasonHandshakeRefused, Status: http.StatusForbidden,
			Detail: "the challenge comes with another token than the one that is configured",
		}
	}
	if h.echo == nil {
		return true, nil
	}
	echo := r.get(h.echo)
	return echo != "" && len(echo) <= maxEcho && utf8.ValidString(echo) && (len(h.Header) == 0 || header.Visible(echo)) &&
		(h.pattern == nil || h.pattern.MatchString(echo)), nil
}

// greet answers the handshake.
func (h *handshake) greet(r *reading, by proof) (*hookonce.Verified, error) {
	fill, err := h.filler(r, by)
	if err != nil {
		return nil, err
	}
	answer := &hookonce.Answer{Status: h.Status, ContentType: h.ContentType, Body: []byte(fill.body.Replace(h.Body))}
	for name, text := range h.Header {
		if answer.Header == nil {
			answer.Header = make(map[string]string, len(h.Header))
		}
		answer.Header[name] = fill.plain.Replace(text)
	}
	d := &hookonce.Verified{Handshake: answer}
	if !h.Unsigned {
		d.Proof = by.public()
	}
	return d, nil
}

// filled puts the challenge and the code into the texts of an answer: as they are, and as they stand in the body.
type filled struct{ plain, body *strings.Replacer }

// filler returns what is put in the place of {{echo}} and {{code}}. What the sender chose goes back as plain text, or
// inside a JSON string.
func (h *handshake) filler(r *reading, by proof) (fill filled, err error) {
	if h.echo == nil {
		return filled{strings.NewReplacer(), strings.NewReplacer()}, nil
	}
	echo := r.get(h.echo)
	code, err := h.compute(r, by, echo)
	fill.plain = strings.NewReplacer("{{echo}}", echo, "{{code}}", code)
	fill.body = fill.plain
	if strings.HasPrefix(h.ContentType, "application/json") {
		fill.body = strings.NewReplacer("{{echo}}", escapeJSON(echo), "{{code}}", escapeJSON(code))
	}
	return fill, err
}

// escapeJSON returns s as it stands between the quotes of a JSON string.
func escapeJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always have a JSON form
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// coder is a [matcher] that computes codes.
type coder interface {
	// code returns the code of a challenge under the secret with that number, or under the first valid
	// one; an error if there is no such secret.
	code(challenge string, e Encoding, now time.Time, secret int) (string, error)
}

func (h *handshake) bindCode(verifiers []verifier) error {
	switch c := h.Handshake.Code; {
	case c == nil:
		return nil
	case h.echo == nil:
		return fault("code", "needs an echo to compute it from")
	case c.Kind != HMAC && c.Kind != PlainHash && c.Kind != Code:
		return fault("code.kind", "there is no %q; use hmac or hash", c.Kind)
	case c.Encoding.check() != nil:
		return within("code", c.Encoding.check())
	case c.Kind != PlainHash && h.Unsigned && h.pattern == nil:
		return fault("pattern", "is missing: whoever asks could have any text signed with the secret; say what a challenge looks like, and exclude what a body looks like")
	case c.Kind != PlainHash && !allCompute(verifiers, c.Kind):
		return fault("code.kind", "is %s, but verify has a way of signing that cannot compute that", c.Kind)
	}
	return h.bindOver()
}

func (h *handshake) bindOver() error {
	c := h.Handshake.Code
	if c.Kind == PlainHash && len(c.Over) == 0 {
		return fault("code.over", "is missing; say what is hashed, as in [echo, token, url]")
	}
	for i, text := range c.Over {
		v, err := parseAs(text, kindEcho, kindToken, kindURL, kindConst)
		if err != nil {
			return within(fmt.Sprintf("code.over[%d]", i), err)
		}
		h.over = append(h.over, v)
	}
	return nil
}

// allCompute reports whether every way of signing can compute codes of that kind.
func allCompute(verifiers []verifier, k Kind) bool {
	for i := range verifiers {
		v := &verifiers[i]
		if m, is := v.matcher.(*codeMatcher); v.kind != k || is && !m.responds() {
			return false
		}
	}
	return true
}

// compute returns the code for a challenge. A signed challenge is answered with the secret that it was
// signed with: while secrets are rotated the sender knows only one.
func (h *handshake) compute(r *reading, by proof, echo string) (string, error) {
	c := h.Handshake.Code
	switch {
	case c == nil:
		return "", nil
	case c.Kind == PlainHash:
		return h.hash(echo), nil
	case by.verifier == nil:
		by.verifier = h.first
	}
	return by.matcher.(coder).code(echo, c.Encoding, r.req.Now, by.secret)
}

// hash returns the SHA-256 over the values that the handshake names.
func (h *handshake) hash(echo string) string {
	var b []byte
	for i := range h.over {
		switch v := &h.over[i]; v.kind {
		case kindEcho:
			b = append(b, echo...)
		case kindToken:
			b = append(b, h.token...)
		case kindURL:
			b = append(b, h.url...)
		default:
			b = append(b, v.text...)
		}
	}
	sum := sha256.Sum256(b)
	return string(h.Handshake.Code.Encoding.append(nil, sum[:]))
}

// challengeable returns what was signed, nothing if that is too long to be a challenge.
func (v *verifier) challengeable(r *reading, secret int) []byte {
	if m, is := v.matcher.(*codeMatcher); is {
		return []byte(m.signed(r, secret))
	}
	if v.signs(kindBody) && len(r.req.Body) > maxEcho {
		return nil
	}
	return v.message(r)
}
