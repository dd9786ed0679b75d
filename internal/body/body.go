// Package body reads the bodies of requests under a limit, and has the senders of those that are refused read why.
package body

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
)

// The reasons for which a body is not taken. The first three are the sender's fault.
var (
	ErrTooLarge  = errors.New("the body is larger than the limit")
	ErrTruncated = errors.New("the body ended before it was complete")
	ErrSlow      = errors.New("the body did not arrive in time")
	// ErrNoMemory says that a [Memory] had no room for it.
	ErrNoMemory = errors.New("there is no memory for the body now")
	// ErrTouched says that what was read is not what the client sent: see [ReadWhole].
	ErrTouched = errors.New("the body was read, cut, closed or replaced before")
)

// Memory is what bodies are held in. Take reports whether n more bytes may be held, and Give returns some.
type Memory interface {
	Take(n int64) bool
	Give(n int64)
}

// firstStep is how much memory is set aside for a body when its first byte is there. Above it the memory grows with
// what was received, so that announcing much and sending little costs the sender more than the receiver.
const firstStep = 4 << 10

// Read returns the body of r, which comes straight from the server, of at most limit bytes. One that is announced as
// larger is refused before any of it is read, so that a sender that asks first (Expect: 100-continue) never sends it.
// The capacity of what is returned was taken from m, also beside an error; nil has no bounds. Nothing is taken before
// the first byte.
func Read(r *http.Request, limit int64, m Memory) ([]byte, error) {
	switch {
	case r.ContentLength > limit:
		return nil, ErrTooLarge
	case r.ContentLength == 0:
		return nil, nil
	}
	most := beyond(limit)
	if r.ContentLength > 0 {
		most = int(r.ContentLength)
	}
	body, err := readUpTo(r.Body, most, m)
	switch {
	case err != nil:
		return body, refusal(err)
	case int64(len(body)) > limit:
		return body, ErrTooLarge
	case int64(len(body)) < r.ContentLength:
		return body, ErrTruncated
	}
	return body, nil
}

// beyond returns a number of bytes that is above the limit: one byte more tells that a body of unknown length is too
// large.
func beyond(limit int64) int { return int(min(limit, math.MaxInt-1)) + 1 }

// readUpTo reads until there are most bytes, or the end.
func readUpTo(r io.Reader, most int, m Memory) ([]byte, error) {
	body := make([]byte, 0, 1)
	for len(body) < most {
		if len(body) == cap(body) {
			larger, err := grow(body, most, m)
			if err != nil {
				return body, err
			}
			body = larger
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return body, err
		}
	}
	return body, nil
}

// grow returns body with twice the room, at most for most bytes. The room of both is taken while both are there, which
// is less than twice most.
func grow(body []byte, most int, m Memory) ([]byte, error) {
	size := min(most, max(firstStep, 2*cap(body)))
	if m != nil && !m.Take(int64(size)) {
		return body, ErrNoMemory
	}
	larger := make([]byte, len(body), size)
	copy(larger, body)
	if m != nil && cap(body) > 1 { // the first byte came before anything was taken
		m.Give(int64(cap(body)))
	}
	return larger, nil
}

// refusal says for which reason a body could not be read, beside the error itself.
func refusal(err error) error {
	var exceeded *http.MaxBytesError
	switch {
	case errors.Is(err, ErrNoMemory):
		return err
	case errors.As(err, &exceeded): // of a middleware
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrSlow, err)
	}
	return fmt.Errorf("%w: %w", ErrTruncated, err)
}
