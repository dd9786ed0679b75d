package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// keyed is a set of compiled secrets.
type keyed[K any] []numbered[K]

// numbered is a compiled secret with its number, from 1, among all secrets of the endpoint.
type numbered[K any] struct {
	Secret
	number int
	key    K
}

// newKeyed compiles every secret that has the form that compile wants. A secret of another way of
// signing is left out; its number stays its own.
func newKeyed[K any](secrets []Secret, compile func(text string) (K, error)) (keyed[K], error) {
	var set keyed[K]
	for i, s := range secrets {
		key, err := compile(s.Text)
		if errors.Is(err, errOtherForm) {
			continue
		}
		if err != nil {
			return nil, &secretError{fmt.Errorf("secret %d of %d %w", i+1, len(secrets), err)}
		}
		set = append(set, numbered[K]{s, i + 1, key})
	}
	if len(set) == 0 {
		return nil, errOtherForm
	}
	return set, nil
}

// ErrSecret is wrapped by the errors of [New] that are about the form of a secret, and not about the
// specification or the other settings.
var ErrSecret = errors.New("a secret does not fit")

type secretError struct{ error }

func (e *secretError) Is(target error) bool { return target == ErrSecret }

func (e *secretError) Unwrap() error { return e.error }

func (set keyed[K]) active(now time.Time) bool {
	_, err := set.pick(now, firstValid)
	return err == nil
}

// firstValid stands for the first secret that is valid.
const firstValid = 0

// pick returns the valid key with that number, or the first valid one.
func (set keyed[K]) pick(now time.Time, number int) (key K, err error) {
	for i := range set {
		if set[i].Secret.active(now) && (number == firstValid || number == set[i].number) {
			return set[i].key, nil
		}
	}
	return key, hookonce.ErrNoSecret
}

// knows reports whether there is a key with that number.
func (set keyed[K]) knows(number int) bool {
	return slices.ContainsFunc(set, func(key numbered[K]) bool { return key.number == number })
}

// find returns the number, from 1, of the first valid key for which try is true.
func (set keyed[K]) find(now time.Time, try func(K) bool) int {
	for i := range set {
		if set[i].Secret.active(now) && try(set[i].key) {
			return set[i].number
		}
	}
	return 0
}

// equal compares two texts in a time that depends on neither, nor on their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}

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

// Secrets returns secrets that are valid at all times.
func Secrets(texts ...string) []Secret {
	secrets := make([]Secret, len(texts))
	for i, text := range texts {
		secrets[i].Text = text
	}
	return secrets
}

// Guess returns how many characters of the secret somebody has to guess who wants to pass for the sender: what follows
// whsec_ in that form, the password of basic authentication, all of others. Of several ways of signing that the
// secret is for the fewest count. It is -1 if the secret is a public key, or for none of them.
func (s Spec) Guess(secret string) int {
	least := -1
	for _, v := range s.WithDefaults().Verify {
		if n := v.guess(secret); n >= 0 && (least < 0 || n < least) {
			least = n
		}
	}
	return least
}

// guess is [Spec.Guess] for one way of signing.
func (v Verify) guess(secret string) int {
	switch v.Kind {
	case Basic:
		_, secret, _ = strings.Cut(secret, ":")
	case HMAC, PlainHash:
		if _, err := v.Key.decode(secret); err != nil {
			return -1
		}
		if v.Key == KeyWhsec || v.Key == KeyWhsecOnly {
			secret = strings.TrimPrefix(strings.TrimPrefix(secret, "v1,"), "whsec_")
		}
	case HTTPSignature:
		if !v.sharesSecret() {
			return -1
		}
	case JWT:
		if len(v.Algorithms) == 0 || !strings.HasPrefix(v.Algorithms[0], "HS") {
			return -1
		}
	case Token, Code:
	default:
		return -1
	}
	return len(secret)
}
