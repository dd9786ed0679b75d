package spec

import (
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// Scheme is code that verifies what data cannot express. Implementations are immutable, safe for
// concurrent use, and written by the catalogue.
type Scheme interface {
	// MarshalText returns the scheme's name, as in "twilio".
	MarshalText() ([]byte, error)
	// Covers says what the signature binds.
	Covers() Coverage
	// Signs reports whether the signature covers what that value names.
	Signs(Value) bool
	// Compile prepares one secret. Errors never contain it.
	Compile(secret string) (Checker, error)
}

// Checker verifies with one secret.
type Checker interface {
	// Check returns nil if the request is authentic. It returns a *[hookonce.RejectError] if it is not,
	// and any other error if that cannot be decided now: the sender is asked to come again.
	Check(req *hookonce.Request) error
}

// Decoder is implemented by a [Scheme] whose sender does not write JSON. The body has been verified by
// then.
type Decoder interface {
	// Decode returns the JSON document in which the values of the specification are looked up.
	Decode(req *hookonce.Request) ([]byte, error)
}

// Imitator is implemented by a [Scheme] whose secret is shared with the sender.
type Imitator interface {
	// Imitable reports whether every checker is a [Sealer].
	Imitable() bool
	// Carrier says where the signature is.
	Carrier() Value
}

// A Checker may also be a [Sealer], which signs, and a [Responder], which answers challenges.
type (
	// Sealer signs a request the way the sender does.
	Sealer interface {
		Seal(req *hookonce.Request) error
	}
	// Responder computes the answer to a challenge with the secret that signs.
	Responder interface {
		Respond(challenge string) string
		// Signed returns the text that the signature of a request is made over. A request in which that
		// looks like a challenge is refused: its signature could have been obtained by asking.
		Signed(req *hookonce.Request) string
	}
)

// Secret is one of the secrets of an endpoint.
type Secret struct {
	// Text is the secret in the form that the provider hands out.
	Text string
	// From and Until bound when it is accepted: from From on, and before Until. Zero: no bound.
	From, Until time.Time
}

// Format writes nothing of the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "{a secret}") }

// MarshalText writes nothing of the secret, so that JSON and structured logs hold none.
func (s Secret) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", s), nil }

// active reports whether the secret is accepted at that time.
func (s Secret) active(now time.Time) bool {
	return (s.From.IsZero() || !now.Before(s.From)) && (s.Until.IsZero() || now.Before(s.Until))
}
