package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// cleanupTimeout bounds the rollback and the trace of a failed attempt, which the caller's context
// does not cut short.
const cleanupTimeout = 5 * time.Second

// Within implements [hookonce.TxStore]. The transaction has the database's default isolation level,
// and lock_timeout is the caller's own while fn runs. When the commit's outcome is unknown a trace is
// left as well, unless it finds the work done.
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(tx pgx.Tx, c hookonce.Claim) error) (hookonce.Claim, error) {
	tx, c, err := s.begin(ctx, req)
	if err != nil || tx == nil {
		return c, err
	}
	if err := s.attempt(ctx, tx, c, fn); err != nil {
		return hookonce.Claim{}, fmt.Errorf("pgstore: %s: attempt %d: %w", c.Ref, c.Token, err)
	}
	return c, nil
}

// begin starts the transaction and claims. Without an error, the transaction is nil when there is no
// work to do.
func (s *Store) begin(ctx context.Context, req hookonce.ClaimRequest) (tx pgx.Tx, c hookonce.Claim, err error) {
	if err := req.Validate(); err != nil {
		return nil, hookonce.Claim{}, err
	}
	if req.Key == "" {
		if tx, err = s.pool.Begin(ctx); err != nil {
			return nil, hookonce.Claim{}, fmt.Errorf("pgstore: begin: %w", err)
		}
		return tx, hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	c, err = s.contend(req.Ref, func(limit lockTimeout) (c hookonce.Claim, err error) {
		tx, c, err = s.beginClaim(ctx, req, limit)
		return c, err
	})
	return tx, c, err
}

// beginClaim sends BEGIN and the claim together and keeps the transaction open only if it won.
func (s *Store) beginClaim(ctx context.Context, req hookonce.ClaimRequest, limit lockTimeout) (pgx.Tx, hookonce.Claim, error) {
	q := s.claimQuery(req, hookonce.StateDone, limit)
	var c hookonce.Claim
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	b.Queue(s.sql.claim, q.args...).QueryRow(func(row pgx.Row) (err error) {
		c, err = q.scan(row)
		return err
	})
	results := s.pool.SendBatch(ctx, &b)
	err := results.Close()
	if err == nil && c.Verdict == hookonce.Won {
		return results.Tx(), c, nil
	}
	s.rollback(ctx, results.Tx())
	return nil, c, err
}

// rollback ends tx and returns its connection to the pool, or closes it if the rollback fails: the
// server then rolls back by itself.
func (s *Store) rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// attempt runs fn and commits, or rolls back and leaves a trace.
func (s *Store) attempt(ctx context.Context, tx pgx.Tx, c hookonce.Claim, fn func(pgx.Tx, hookonce.Claim) error) (err error) {
	err = errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			s.rollback(ctx, tx)
			err = s.trace(ctx, c, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(handlerTx{tx}, c); err == nil {
		err = commit(ctx, tx)
	}
	return err
}

// trace records that an attempt failed with cause, and returns cause.
func (s *Store) trace(ctx context.Context, c hookonce.Claim, cause error) error {
	if c.Key == "" {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	f := hookonce.Failure{Err: cause, Dead: hookonce.IsPermanent(cause)}
	err := again(func() error {
		_, err := s.pool.Exec(ctx, s.sql.trace, c.Source, c.Key, string(f.State()), c.Token, c.Type, c.Digest,
			s.now(), f.Text(), (*string)(until(time.Now().Add(s.wait))))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, err)
	}
	return cause
}

// again runs try until it does not fail for a lost race, a bounded number of times.
func again(try func() error) (err error) {
	for range maxTries {
		if err = try(); !isSerialization(err) {
			break
		}
	}
	return err
}
