package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// ErrLies says that the list cannot be what the sender documents: it leads back to itself, to another host, or has no end.
var ErrLies = errors.New("the list cannot be right")

// ErrRights says that the token is not accepted, or may not do what was asked.
var ErrRights = errors.New("the token does not permit it")

// ErrElsewhere is for [Options.Ingest]: the event belongs to another cell, and was not stored.
var ErrElsewhere = errors.New("the event is another cell's")

// AnswerError says that the sender's API answered with something else than success.
type AnswerError struct {
	// Doing says what was asked for.
	Doing string
	// Status is the HTTP status.
	Status int
	// Advice says what to do about it, if that is known.
	Advice string
	// After is how long the sender asked to wait, at the last try.
	After time.Duration

	rights bool
}

// Error says what was asked for, the status, and what to do.
func (e *AnswerError) Error() string {
	text := fmt.Sprintf("%s: the API answered %d", e.Doing, e.Status)
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text
}

// Unwrap returns [ErrRights] where the token is at fault.
func (e *AnswerError) Unwrap() error {
	if e.rights {
		return ErrRights
	}
	return nil
}

// lies returns an error that wraps [ErrLies].
func lies(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLies, fmt.Sprintf(format, args...))
}
