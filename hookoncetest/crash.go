package hookoncetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hookonce/hookonce"
)

// CrashPoint is a side of a commit.
type CrashPoint int

// The crash points.
const (
	// BeforeCommit loses the work: it failed, and is not persisted.
	BeforeCommit CrashPoint = iota + 1
	// AfterCommit loses the answer: it failed, but is persisted.
	AfterCommit
)

// ErrCrash is wrapped by the errors that [Crash] makes.
var ErrCrash = errors.New("hookoncetest: a crash that the test asked for")

// Crash returns a store that fails at the nth of its commits, counted from 1; several numbers are several
// crashes. A commit is a call of Within that ran its function without an error, of Complete or of
// CompleteWith.
//
// BeforeCommit undoes the work: Within rolls the transaction back, and Complete and CompleteWith do
// nothing. AfterCommit does it, and answers as if the connection had been lost meanwhile: Within with
// [hookonce.ErrUnknownOutcome]. Both answers wrap [ErrCrash]. Unlike the death of a process, a crash before
// the commit leaves the trace of a failed attempt in the store.
//
// Crash panics if store is nil, the point is unknown, or no number is given or one is below 1.
func Crash[Tx any](store hookonce.TxResponseStore[Tx], point CrashPoint, nth ...int) *CrashStore[Tx] {
	switch {
	case store == nil:
		panic("hookoncetest: Crash needs a store")
	case point != BeforeCommit && point != AfterCommit:
		panic(fmt.Sprintf("hookoncetest: Crash: %d is no crash point", point))
	case len(nth) == 0 || slices.Min(nth) < 1:
		panic("hookoncetest: Crash needs the numbers of the commits that crash, from 1")
	}
	return &CrashStore[Tx]{TxResponseStore: store, point: point, nth: slices.Clone(nth)}
}

// CrashStore is a store whose connection is lost around a commit. See [Crash]. Its other methods are those
// of the store in it. It is safe for concurrent use.
type CrashStore[Tx any] struct {
	hookonce.TxResponseStore[Tx]
	point CrashPoint
	nth   []int

	mu      sync.Mutex
	commits int
	crashes int
}

// Unwrap returns the store in it, where outbox and guards are found.
func (s *CrashStore[Tx]) Unwrap() hookonce.TxStore[Tx] { return s.TxResponseStore }

// Crashes returns how many commits have crashed: a test whose crashes never came has shown nothing.
func (s *CrashStore[Tx]) Crashes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashes
}

// Within implements [hookonce.TxStore].
func (s *CrashStore[Tx]) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	crash := false
	c, err := s.TxResponseStore.Within(ctx, req, func(tx Tx, c hookonce.Claim) error {
		if err := fn(tx, c); err != nil {
			return err
		}
		if crash = s.commit(); crash && s.point == BeforeCommit {
			return fmt.Errorf("%w, before the commit", ErrCrash)
		}
		return nil
	})
	if err == nil && crash {
		err = fmt.Errorf("%w: %w, after the commit", hookonce.ErrUnknownOutcome, ErrCrash)
	}
	return c, err
}

// Complete implements [hookonce.Store].
func (s *CrashStore[Tx]) Complete(ctx context.Context, c hookonce.Claim) error {
	return s.around(func() error { return s.TxResponseStore.Complete(ctx, c) })
}

// CompleteWith implements [hookonce.ResponseStore].
func (s *CrashStore[Tx]) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	return s.around(func() error { return s.TxResponseStore.CompleteWith(ctx, c, r) })
}

// around calls record, unless this is the time to crash before it.
func (s *CrashStore[Tx]) around(record func() error) error {
	crash := s.commit()
	if crash && s.point == BeforeCommit {
		return fmt.Errorf("%w, before it was recorded", ErrCrash)
	}
	err := record()
	if err == nil && crash {
		err = fmt.Errorf("%w, after it was recorded", ErrCrash)
	}
	return err
}

// commit counts a commit, and reports whether it crashes.
func (s *CrashStore[Tx]) commit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	if !slices.Contains(s.nth, s.commits) {
		return false
	}
	s.crashes++
	return true
}
