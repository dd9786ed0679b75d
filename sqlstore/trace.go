package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

var errGaveWay = errors.New("the key belongs to another attempt by now")

// trace records that the attempt under c failed with cause, under a deadline of its own, and returns
// cause. An attempt without a key leaves no trace: there is nothing to find it by. A permanent or pinned
// failure that has to give way to another attempt is not on record: then the error wraps
// [hookonce.ErrTraceLost] as well.
//
// It is safe even if the commit's outcome is unknown: the statement waits for a transaction that is
// still under way, and then leaves done work alone. Only of an attempt that is torn is the claim opened again which
// a commit in passing made durable: what came after that is not done.
func (a *attempt) trace(ctx context.Context, cause error) error {
	s, c := a.store, a.claim
	f := hookonce.FailureOf(ctx, c.Ref, cause)
	if c.Key == "" || f.Forgets(c.Token) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceDeadline)
	defer cancel()
	failed := c
	failed.State, failed.UpdatedAt, failed.LastError, failed.Pinned = f.State(), s.now(), f.Text(), 0
	if f.Pin {
		failed.Pinned = c.Token
	}
	var made time.Time
	if a.torn {
		made = c.UpdatedAt
	}
	var recorded bool
	err := s.insist(ctx, func() (err error) {
		recorded, err = s.dialect.trace(s.dialect, ctx, s.db, failed, made)
		return err
	})
	if err == nil && (f.Dead || f.Pin) && !recorded {
		err = errGaveWay
	}
	if err != nil {
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, s.explain(ctx, s.db, err))
	}
	return cause
}
