package sqlapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// handlerTx is a transaction that ends when its handler returns, and not before.
type handlerTx struct{ pgx.Tx }

func (handlerTx) Commit(context.Context) error   { return errors.New("the handler must not commit") }
func (handlerTx) Rollback(context.Context) error { return errors.New("the handler must not roll back") }

// Within is what docs/sql.md tells programs to do: begin, claim, work, commit; and after a rollback,
// failed() in a transaction of its own.
func (s *store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(pgx.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return hookonce.Claim{}, err
	}
	c, err := s.ClaimTx(ctx, tx, req)
	if err != nil || c.Verdict == hookonce.Duplicate {
		end(ctx, tx)
		return c, err
	}
	if err := s.attempt(ctx, tx, c, fn); err != nil {
		return c, err
	}
	return c, nil
}

func (s *store) attempt(ctx context.Context, tx pgx.Tx, c hookonce.Claim, fn func(pgx.Tx, hookonce.Claim) error) (err error) {
	began := s.clock()
	err = errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			end(ctx, tx)
			err = s.trace(ctx, c, began, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(handlerTx{tx}, c); err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	return err
}

// trace records that the attempt failed with cause, and returns cause.
func (s *store) trace(ctx context.Context, c hookonce.Claim, began time.Time, cause error) error {
	f := hookonce.FailureOf(ctx, c.Ref, cause)
	if c.Key == "" || f.Forgets(c.Token) {
		return cause
	}
	message, onRecord := text(f), false
	err := s.ask(context.WithoutCancel(ctx), s.pool, query{
		text: `SELECT %s.failed($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		args: []any{c.Source, c.Key, message, f.Dead, c.Token, storable(c.Type), c.Digest, began, f.Pin},
		read: func(row pgx.Row) error { return row.Scan(&onRecord) },
	})
	if err != nil || ((f.Dead || f.Pin) && !onRecord) {
		return fmt.Errorf("%w (%w: %v)", cause, hookonce.ErrTraceLost, err)
	}
	return cause
}

func end(ctx context.Context, tx pgx.Tx) { _ = tx.Rollback(context.WithoutCancel(ctx)) }
