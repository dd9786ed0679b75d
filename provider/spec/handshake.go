package spec

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
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

// ChallengeCode is what a handshake computes.
type ChallengeCode struct {
	// Kind is [HMAC] with the endpoint's secret, [PlainHash] (SHA-256), or [Code] of the scheme.
	Kind Kind `yaml:"kind"`
	// Over lists what a plain hash is made of: echo, token and url. The others take the challenge.
	Over []Value `yaml:"over,omitempty,flow"`
	// Encoding is how it is written. Default [Hex].
	Encoding Encoding `yaml:"encoding,omitempty"`
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

func (p *Provider) newHandshake(s Handshake) (h handshake, err error) {
	h.Handshake = s
	h.Method = or(h.Method, http.MethodPost)
	h.Unsigned = h.Unsigned || h.Method != http.MethodPost
	h.Status = or(h.Status, http.StatusOK)
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
		h.Body = or(h.Body, "{{echo}}")
	}
	if h.Body != "" {
		h.ContentType = or(h.ContentType, "text/plain; charset=utf-8")
	}
	if err := h.inert(); err != nil {
		return h, err
	}
	if h.pattern, err = compilePattern(s.Pattern); err != nil {
		return h, err
	}
	return h, h.bindCode()
}

// inert refuses answers that a browser would run: the challenge is what a stranger wrote.
func (h *handshake) inert() error {
	kind, _, _ := strings.Cut(h.ContentType, ";")
	switch {
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodOptions}, h.Method):
		return fmt.Errorf("method: there is no %q; use GET, HEAD, OPTIONS, POST or PUT", h.Method)
	case h.Status < 200 || h.Status > 299:
		return fmt.Errorf("status: is %d; a challenge is answered with 200 to 299", h.Status)
	case h.Body != "" && kind != "text/plain" && kind != "application/json":
		return fmt.Errorf("content_type: is %q; what a stranger wrote goes back as text/plain or application/json only", h.ContentType)
	}
	return nil
}

func compilePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	p, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return p, nil
}

func (h *handshake) bindCode() error {
	switch c := h.Handshake.Code; {
	case h.Method == http.MethodPost && len(h.when) == 0:
		return errors.New("when: is empty: every event would be taken for a handshake")
	case c == nil:
		return nil
	case h.echo == nil:
		return errors.New("code: needs an echo to compute it from")
	case c.Kind != HMAC && c.Kind != PlainHash && c.Kind != Code:
		return fmt.Errorf("code.kind: there is no %q; use hmac or hash", c.Kind)
	case c.Kind != PlainHash && h.Unsigned && h.pattern == nil:
		return errors.New("pattern: is missing: whoever asks could have any text signed with the secret; say what a challenge looks like, and exclude what a body looks like")
	default:
		for i, text := range c.Over {
			v, err := parseAs(text, kindEcho, kindToken, kindURL, kindConst)
			if err != nil {
				return within(fmt.Sprintf("code.over[%d]", i), err)
			}
			h.over = append(h.over, v)
		}
	}
	return nil
}

// greet answers a handshake of the given sort, nil if the request is none.
func (p *Provider) greet(r *reading, unsigned bool) (*hookonce.Delivery, error) {
	if !p.settings.Handshakes {
		return nil, nil
	}
	for i := range p.hands {
		h := &p.hands[i]
		if h.Unsigned != unsigned || h.Method != r.method {
			continue
		}
		ok, err := h.applies(r)
		if err != nil {
			return nil, err
		}
		if ok {
			d := &hookonce.Delivery{Reply: h.answer(r)}
			if !unsigned {
				d.Proof = r.proof.public()
			}
			return d, nil
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

// answer fills in the body. What the sender chose goes back as plain text, or inside a JSON string.
func (h *handshake) answer(r *reading) *hookonce.Answer {
	a := &hookonce.Answer{Status: h.Status, ContentType: h.ContentType}
	body := h.Body
	if h.echo != nil {
		echo, escape := r.get(h.echo), func(s string) string { return s }
		if strings.HasPrefix(h.ContentType, "application/json") {
			escape = escapeJSON
		}
		body = strings.NewReplacer("{{echo}}", escape(echo), "{{code}}", escape(h.compute(r, echo))).Replace(body)
	}
	a.Body = []byte(body)
	return a
}

// compute returns the code for a challenge.
func (h *handshake) compute(r *reading, echo string) string {
	c := h.Handshake.Code
	if c == nil {
		return ""
	}
	switch m := r.p.verifiers[0].matcher.(type) {
	case *macMatcher:
		if c.Kind == HMAC {
			return m.code(echo, or(c.Encoding, Hex), r.req.Now)
		}
	case *codeMatcher:
		if key, ok := m.current(r.req.Now); ok && c.Kind == Code {
			if responder, can := key.(Responder); can {
				return responder.Respond(echo)
			}
		}
	}
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
	return string(or(c.Encoding, Hex).append(nil, sum[:]))
}

// couldBeChallenge reports whether the signature of this request could have been obtained as the answer
// to a challenge: whether what is signed is what a challenge looks like.
func (p *Provider) couldBeChallenge(by *verifier, r *reading) bool {
	if !p.settings.Handshakes || by.signs(kindBody) && len(r.req.Body) > maxEcho {
		return false
	}
	for i := range p.hands {
		h := &p.hands[i]
		if h.Unsigned && h.Handshake.Code != nil && h.Handshake.Code.Kind == HMAC && h.pattern.Match(by.message(r)) {
			return true
		}
	}
	return false
}

// escapeJSON returns s as it stands between the quotes of a JSON string.
func escapeJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always have a JSON form
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}
