package spec

import (
	"errors"
	"fmt"
	"time"
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
	_, ok := set.current(now)
	return ok
}

// current returns the first key that is valid.
func (set keyed[K]) current(now time.Time) (key K, ok bool) { return set.pick(now, 0) }

// pick returns the valid key with that number, or the first valid one if the number is 0.
func (set keyed[K]) pick(now time.Time, number int) (key K, ok bool) {
	for i := range set {
		if set[i].Secret.active(now) && (number == 0 || number == set[i].number) {
			return set[i].key, true
		}
	}
	return key, false
}

// knows reports whether there is a key with that number.
func (set keyed[K]) knows(number int) bool {
	for i := range set {
		if set[i].number == number {
			return true
		}
	}
	return false
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
