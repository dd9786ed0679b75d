package journal

import (
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
)

// Errors of accepting events, each to be answered with a retryable 503.
var (
	// ErrFull says that too much is waiting for its commit already. Nothing was stored.
	ErrFull = errors.New("journal: the queue is full")
	// ErrClosed says that the journal is shutting down. Nothing was stored.
	ErrClosed = errors.New("journal: closed")
	// ErrUnavailable wraps what the store said when a commit failed. The entries may be stored.
	ErrUnavailable = errors.New("journal: the store is unavailable")
)

// IsOutage reports whether an error of accepting events means that the store is unavailable, and not that
// the journal is full or closing.
func IsOutage(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, hookonce.ErrUnknownOutcome)
}

// ErrNoEvent says that the journal has no such event, or not any more.
var ErrNoEvent = errors.New("journal: there is no such event")

// CheckAnswers returns an error unless a store gave as many answers as it was asked for.
func CheckAnswers(got, asked int) error {
	if got != asked {
		return fmt.Errorf("journal: the store gave %d answers, and was asked for %d", got, asked)
	}
	return nil
}
