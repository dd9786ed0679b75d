package spec

import (
	"cmp"
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
)

// Handshake describes a request that proves who controls the endpoint.
type Handshake struct {
	// Method is the HTTP method. Default POST.
	Method string `yaml:"method,omitempty"`
	// When lists what marks the handshake; all of it must hold. Empty: every request with the method,
	// which is never right for POST.
	When []Match `yaml:"when,omitempty"`
	// Unsigned is set if the sender does not sign the handshake. It is answered without a look at the
	// signature then. A handshake with a method other than POST is always unsigned.
	Unsigned bool `yaml:"unsigned,omitempty"`
	// Echo is the challenge. A request without it, or with more than 1024 bytes in it, is not a
	// handshake.
	Echo Value `yaml:"echo,omitempty"`
	// Pattern is a regular expression that the whole challenge must match. Required where the answer is
	// computed with a secret: it must exclude everything that a signed body can be, or the endpoint
	// would sign for strangers. A body that matches it is refused.
	Pattern string `yaml:"pattern,omitempty"`
	// Code computes {{code}} from the challenge. Nil: nothing is computed.
	Code *ChallengeCode `yaml:"code,omitempty"`
	// Status is the status of the answer. Default 200.
	Status int `yaml:"status,omitempty"`
	// ContentType is text/plain or application/json. Default text/plain where there is a body, else none.
	ContentType string `yaml:"content_type,omitempty"`
	// Body is the body of the answer, in which {{echo}} and {{code}} are replaced. Default "{{echo}}"
	// where there is an Echo, else empty.
	Body string `yaml:"body,omitempty"`
}

// Match compares a value. With neither Is nor Token the value must be present.
type Match struct {
	Value Value  `yaml:"value"`
	Is    string `yaml:"is,omitempty"`
	// Token is set if the value must be [Settings.Token]. A request in which it is something else is
	// refused with 403.
	Token bool `yaml:"token,omitempty"`
}

// maxEcho is the longest challenge, in bytes, that is answered.
const maxEcho = 1024

// handshake is a [Handshake] in compiled form.
type handshake struct {
	Handshake
	when    []match
	echo    *value
	pattern *regexp.Regexp
	over    []value
}

type match struct {
	Match
	value value
}

// withDefaults fills in what the method and the challenge suggest.
func (h Handshake) withDefaults() Handshake {
	h.Method = cmp.Or(h.Method, http.MethodPost)
	h.Unsigned = h.Unsigned || h.Method != http.MethodPost
	h.Status = cmp.Or(h.Status, http.StatusOK)
	if h.Echo != "" {
		h.Body = cmp.Or(h.Body, "{{echo}}")
	}
	if h.Body != "" {
		h.ContentType = cmp.Or(h.ContentType, "text/plain; charset=utf-8")
	}
	if h.Code != nil {
		code := *h.Code
		code.Encoding = cmp.Or(code.Encoding, Hex)
		h.Code = &code
	}
	return h
}

// newHandshake compiles a handshake whose defaults are filled in.
func (p *Provider) newHandshake(s Handshake) (h handshake, err error) {
	h.Handshake = s
	kinds := []kind{kindQuery, kindForm, kindHeader, kindJSON}
	for i, m := range s.When {
		v, err := p.fact(m.Value, kinds...)
		if err != nil {
			return h, within(fmt.Sprintf("when[%d]", i), err)
		}
		h.when = append(h.when, match{m, v})
	}
	if s.Echo != "" {
		v, err := p.fact(s.Echo, kinds...)
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
	return h, h.bindCode(p)
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

// greet answers a handshake of the given sort, nil if the request is none.
func (p *Provider) greet(r *reading, unsigned bool) (*hookonce.Verified, error) {
	if !p.settings.Handshakes {
		return nil, nil
	}
	for i := range p.handshakes {
		h := &p.handshakes[i]
		if h.Unsigned != unsigned || h.Method != r.method {
			continue
		}
		ok, err := h.applies(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return h.greet(r)
		}
	}
	return nil, nil
}

// applies reports whether the request is this handshake. A wrong token refuses it.
func (h *handshake) applies(r *reading) (bool, error) {
	tokens := true
	for i := range h.when {
		m := &h.when[i]
		text := r.get(&m.value)
		switch {
		case m.Token:
			tokens = tokens && r.p.settings.Token != "" && equal(text, r.p.settings.Token)
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
	return echo != "" && len(echo) <= maxEcho && utf8.ValidString(echo) &&
		(h.pattern == nil || h.pattern.MatchString(echo)), nil
}

// greet answers the handshake.
func (h *handshake) greet(r *reading) (*hookonce.Verified, error) {
	body, err := h.fill(r)
	if err != nil {
		return nil, err
	}
	d := &hookonce.Verified{Handshake: &hookonce.Answer{Status: h.Status, ContentType: h.ContentType, Body: []byte(body)}}
	if !h.Unsigned {
		d.Proof = r.proof.public()
	}
	return d, nil
}

// fill returns the body of the answer. What the sender chose goes back as plain text, or inside a JSON
// string.
func (h *handshake) fill(r *reading) (string, error) {
	if h.echo == nil {
		return h.Body, nil
	}
	echo, escape := r.get(h.echo), func(s string) string { return s }
	if strings.HasPrefix(h.ContentType, "application/json") {
		escape = escapeJSON
	}
	code, err := h.compute(r, echo)
	return strings.NewReplacer("{{echo}}", escape(echo), "{{code}}", escape(code)).Replace(h.Body), err
}

// escapeJSON returns s as it stands between the quotes of a JSON string.
func escapeJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always have a JSON form
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// ChallengeCode is what a handshake computes.
type ChallengeCode struct {
	// Kind is [HMAC] with the endpoint's secret, [PlainHash] (SHA-256), or [Code] of the scheme. Every
	// way of signing must be of that kind, except for a plain hash, which needs no secret.
	Kind Kind `yaml:"kind" only:"hmac,hash"`
	// Over lists what a plain hash is made of: echo, token and url. The others take the challenge.
	Over []Value `yaml:"over,omitempty,flow"`
	// Encoding is how it is written. Default [Hex].
	Encoding Encoding `yaml:"encoding,omitempty"`
}

// coder is a [matcher] that computes codes.
type coder interface {
	// code returns the code of a challenge under the secret with that number, or under the first valid
	// one if the number is 0; false if there is no such secret.
	code(challenge string, e Encoding, now time.Time, secret int) (string, bool)
}

func (h *handshake) bindCode(p *Provider) error {
	switch c := h.Handshake.Code; {
	case c == nil:
		return nil
	case h.echo == nil:
		return fault("code", "needs an echo to compute it from")
	case c.Kind != HMAC && c.Kind != PlainHash && c.Kind != Code:
		return fault("code.kind", "there is no %q; use hmac or hash", c.Kind)
	case c.Encoding.size(1) == 0:
		return fault("code.encoding", "there is no %q; use hex, base64 or base64url", c.Encoding)
	case c.Kind != PlainHash && h.Unsigned && h.pattern == nil:
		return fault("pattern", "is missing: whoever asks could have any text signed with the secret; say what a challenge looks like, and exclude what a body looks like")
	case c.Kind != PlainHash && !p.codes(c.Kind):
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

// codes reports whether every way of signing can compute codes of that kind.
func (p *Provider) codes(k Kind) bool {
	for i := range p.verifiers {
		v := &p.verifiers[i]
		if m, is := v.matcher.(*codeMatcher); v.kind != k || is && !m.responds() {
			return false
		}
	}
	return true
}

// compute returns the code for a challenge. A signed challenge is answered with the secret that it was
// signed with: while secrets are rotated the sender knows only one.
func (h *handshake) compute(r *reading, echo string) (string, error) {
	c, by := h.Handshake.Code, r.proof.by
	switch {
	case c == nil:
		return "", nil
	case c.Kind == PlainHash:
		return h.hash(r, echo), nil
	case by == nil:
		by = &r.p.verifiers[0]
	}
	code, ok := by.matcher.(coder).code(echo, c.Encoding, r.req.Now, r.proof.secret)
	if !ok {
		return "", errNoSecret
	}
	return code, nil
}

// hash returns the SHA-256 over the values that the handshake names.
func (h *handshake) hash(r *reading, echo string) string {
	var b []byte
	for i := range h.over {
		switch v := &h.over[i]; v.kind {
		case kindEcho:
			b = append(b, echo...)
		case kindToken:
			b = append(b, r.p.settings.Token...)
		case kindURL:
			b = append(b, r.p.settings.URL...)
		default:
			b = append(b, v.text...)
		}
	}
	sum := sha256.Sum256(b)
	return string(h.Handshake.Code.Encoding.append(nil, sum[:]))
}

// couldBeChallenge reports whether the signature of this request could have been obtained as the answer
// to a challenge: whether what is signed is what a challenge looks like. It does not matter whether this
// endpoint answers challenges: another one with the same secret may.
func (p *Provider) couldBeChallenge(proof proof, r *reading) bool {
	for i := range p.handshakes {
		h := &p.handshakes[i]
		if !h.Unsigned || h.Handshake.Code == nil || h.Handshake.Code.Kind == PlainHash {
			continue
		}
		if signed := proof.by.challengeable(r, proof.secret); len(signed) > 0 && len(signed) <= maxEcho && h.pattern.Match(signed) {
			return true
		}
	}
	return false
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
