package sqlstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
)

// trace records that the attempt under c failed with err, under a deadline of its own, and returns
// err. An attempt without a key leaves no trace: there is nothing to find it by.
//
// It is safe even if the commit's outcome is unknown: the statement waits for a transaction that is
// still under way, and then leaves done work alone.
func (s *Store) trace(ctx context.Context, c hookonce.Claim, err error) error {
	if c.Key == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceDeadline)
	defer cancel()
	f := hookonce.Failure{Err: err, Dead: hookonce.IsPermanent(err)}
	args := []any{
		c.Source, c.Key, string(f.State()), c.Token, c.Type, digest(c.Digest),
		s.dialect.time(c.FirstSeen), s.dialect.time(s.now()), f.Text(),
	}
	lost := s.insist(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.dialect.trace, args...)
		return err
	})
	if lost != nil {
		return fmt.Errorf("%w (%w: %w)", err, hookonce.ErrTraceLost, lost)
	}
	return err
}
