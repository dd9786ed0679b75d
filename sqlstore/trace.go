package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
)

var errGaveWay = errors.New("the key belongs to another attempt by now")

// trace records that the attempt under c failed with cause, under a deadline of its own, and returns
// cause. An attempt without a key leaves no trace: there is nothing to find it by. A permanent failure
// that has to give way to another attempt is not on record: then the error wraps
// [hookonce.ErrTraceLost] as well.
//
// It is safe even if the commit's outcome is unknown: the statement waits for a transaction that is
// still under way, and then leaves done work alone.
func (s *Store) trace(ctx context.Context, c hookonce.Claim, cause error) error {
	if c.Key == "" {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceDeadline)
	defer cancel()
	f := hookonce.Failure{Err: cause, Dead: hookonce.IsPermanent(cause)}
	args := []any{
		c.Source, c.Key, string(f.State()), c.Token, c.Type, digest(c.Digest),
		s.dialect.time(c.FirstSeen), s.dialect.time(s.now()), f.Text(),
	}
	var recorded int64
	err := s.insist(ctx, func() (err error) {
		recorded, err = affected(s.db.ExecContext(ctx, s.dialect.trace, args...))
		return err
	})
	if err == nil && f.Dead && recorded == 0 {
		err = errGaveWay
	}
	if err != nil {
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, s.explain(ctx, s.db, err))
	}
	return cause
}

// affected returns how many rows a statement changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
