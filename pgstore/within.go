package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// cleanupTimeout bounds the rollback and the trace of a failed attempt, which the caller's context
// does not cut short.
const cleanupTimeout = 5 * time.Second

// Within implements [hookonce.TxStore]. The transaction has the database's default isolation level,
// and lock_timeout is the caller's own while fn runs. When the commit's outcome is unknown a trace is
// left as well, unless it finds the work done. A fn that goes on for 5 s after ctx has ended loses its connection: the
// server rolls back, and the key is free, also if fn never returns.
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(tx pgx.Tx, c hookonce.Claim) error) (hookonce.Claim, error) {
	w, c, err := s.begin(ctx, req)
	if err != nil || w == nil {
		return c, err
	}
	if err := s.attempt(ctx, w, c, fn); err != nil {
		return c, fmt.Errorf("pgstore: %s: attempt %d: %w", c.Ref, c.Token, err)
	}
	return c, nil
}

// attempt runs fn and commits, or rolls back and leaves a trace.
func (s *Store) attempt(ctx context.Context, w *work, c hookonce.Claim, fn func(pgx.Tx, hookonce.Claim) error) (err error) {
	s.crowd.Enter(s.size, s.waits)
	err = errors.New("the handler ended its goroutine")
	release := w.leash(ctx, s.patience)
	defer func() {
		p := recover()
		release()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		s.crowd.Leave(s.size)
		w.end(ctx)
		if err != nil {
			err = s.trace(ctx, c, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(handlerTx{w.tx, w}, c); err == nil {
		release()
		err = w.commit(ctx)
	}
	return s.crowd.Explain(ctx, s.size, s.waits, err)
}

// trace records that an attempt failed with cause, and returns cause. A permanent or pinned failure that has to
// give way to another attempt is not on record: then the error wraps [hookonce.ErrTraceLost] as well.
func (s *Store) trace(ctx context.Context, c hookonce.Claim, cause error) error {
	f := hookonce.FailureOf(ctx, c.Ref, cause)
	if c.Key == "" || f.Forgets(c.Token) {
		return cause
	}
	var pinned int64
	if f.Pin {
		pinned = c.Token
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var tag pgconn.CommandTag
	err := s.again(ctx, func() error {
		return s.urgent(ctx, soon, func(on asker) (err error) {
			tag, err = on.Exec(ctx, s.sql.trace, c.Source, c.Key, string(f.State()), c.Token, c.Type, c.Digest,
				s.now(), f.Text(), (*string)(until(time.Now().Add(s.wait))), c.FirstSeen, pinned)
			return err
		})
	})
	if err == nil && (f.Dead || f.Pin) && tag.RowsAffected() == 0 {
		err = errGaveWay
	}
	if err != nil {
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, explain(err))
	}
	return cause
}

var errGaveWay = errors.New("the key belongs to another attempt by now")

// again runs try until it does not fail for a lost race, as often as that takes within the store's wait, and
// maxTries times at least. Pauses are left to chance, so that those who race do not meet again.
func (s *Store) again(ctx context.Context, try func() error) error {
	end := time.Now().Add(s.wait)
	for tries, pause := 1, firstPause; ; tries, pause = tries+1, min(2*pause, lastPause) {
		err := try()
		if !isSerialization(err) || tries >= maxTries && time.Now().After(end) || !rest(ctx, rand.N(pause)) {
			return err
		}
	}
}

// Pauses between tries grow from the one to the other.
const (
	firstPause = time.Millisecond
	lastPause  = 25 * time.Millisecond
)

// rest waits for d and reports whether ctx still runs.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
