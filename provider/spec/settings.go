package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/publicurl"
)

// Settings is what one endpoint adds to a [Spec].
type Settings struct {
	// Secrets are the secrets of the endpoint. At least one; several while a secret is being rotated.
	// Every one that is valid at the time of arrival is tried. See [Secrets].
	Secrets []Secret
	// URL is the address that the provider calls, exactly as registered with it. Schemes that sign the
	// URL need it, see [Spec.SignsURL]: a request with another query is rejected then, unless it only
	// adds to the query here; without a query here it may have any. Empty means [hookonce.Request.URL], which is right only where
	// no proxy changes scheme, host or path. Handshakes whose code is made of the URL (eBay) require it.
	URL string
	// Tolerance is how far the signed time may be from the time of arrival, behind and ahead. Zero
	// means the provider's own. It is an error for a provider that signs no time.
	Tolerance time.Duration
	// Handshakes is set if challenges are answered. Otherwise they are handled like any other request.
	Handshakes bool
	// Token is the text that a handshake asks for besides the secret: the verify token of Meta, the
	// verification token of eBay.
	Token string
	// AsSender is set where requests are made in the sender's name, see [Provider.Sign]: the private key in PEM may stand
	// where an HTTP message signature is verified with a public key. An endpoint has no use for it, and is refused a
	// private key without it.
	AsSender bool

	blind bool // see [NewListed]
}

// Format writes nothing but the number of secrets, so that settings can be logged by mistake.
func (s Settings) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%d secrets, URL %q, tolerance %v, handshakes %v}", len(s.Secrets), withoutQuery(s.URL), s.Tolerance, s.Handshakes)
}

// MarshalText is Format for JSON and structured logs.
func (s Settings) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", s), nil }

// withoutQuery returns a URL without its query, which may hold a token.
func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

// apply checks the settings against the specification, which must be the caller's own, and puts the
// tolerance into it.
func (s Settings) apply(spec Spec) error {
	if len(s.Secrets) == 0 && !s.blind {
		return fmt.Errorf("no secret is given; it needs %s", spec.Secret)
	}
	for i, secret := range s.Secrets {
		if !secret.From.IsZero() && !secret.Until.IsZero() && !secret.From.Before(secret.Until) {
			return fmt.Errorf("secret %d of %d is never valid: its until is not after its from", i+1, len(s.Secrets))
		}
	}
	if s.URL != "" && !publicurl.Valid(s.URL) {
		return errors.New("the URL is not " + publicurl.Rule)
	}
	switch {
	case s.Handshakes && len(spec.Handshakes) == 0:
		return errors.New("handshakes are enabled, but this provider has none; remove that")
	case s.Handshakes && s.Token == "" && spec.needsToken():
		return errors.New("handshakes are enabled, but the token that they ask for is not set")
	case s.Handshakes && s.URL == "" && spec.answersWith("url"):
		return errors.New("handshakes are enabled, but the URL, which their answer is computed from, is not set; give it exactly as it is registered with the sender")
	case s.Tolerance < 0:
		return fmt.Errorf("the tolerance %v is negative", s.Tolerance)
	case s.Tolerance > 0:
		return spec.tolerate(s.Tolerance)
	}
	return nil
}

// needsToken reports whether a handshake compares or computes with [Settings.Token].
func (s Spec) needsToken() bool {
	asked := func(m Match) bool { return m.Token }
	return s.answersWith("token") || slices.ContainsFunc(s.Handshakes, func(h Handshake) bool { return slices.ContainsFunc(h.When, asked) })
}

// answersWith reports whether the code of a handshake is computed from that value.
func (s Spec) answersWith(v Value) bool {
	return slices.ContainsFunc(s.Handshakes, func(h Handshake) bool {
		return h.Code != nil && slices.Contains(h.Code.Over, v)
	})
}

// tolerate sets another tolerance. The specification must be the caller's own (see WithDefaults).
func (s Spec) tolerate(d time.Duration) error {
	timed := false
	for _, v := range s.Verify {
		if v.Time != nil {
			v.Time.Past, v.Time.Future, timed = d, d, true
		}
	}
	if !timed {
		return errors.New("a tolerance is set, but this provider signs no time; remove it")
	}
	return nil
}
