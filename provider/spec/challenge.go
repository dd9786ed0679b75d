package spec

import (
	"crypto/sha256"
	"fmt"
	"time"
)

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
