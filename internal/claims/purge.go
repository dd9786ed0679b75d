package claims

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hookonce/hookonce/internal/schema"
)

// How claims are purged: so often, and so many in one transaction.
const (
	purgeInterval = 10 * time.Minute
	purgeStep     = 1000
)

// forget deletes what need not be remembered any more, until ctx ends.
func (s *Store) forget(ctx context.Context) {
	ticker := time.NewTicker(purgeInterval)
	defer ticker.Stop()
	for {
		for source, age := range s.opt.Remember {
			if err := s.Forget(ctx, source, s.opt.Now().Add(-age)); err != nil && ctx.Err() == nil {
				s.opt.Logger.Error("old answers could not be deleted; it is tried again", "source", source, "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Forget deletes the claims of one source, with their answers, that nobody works on and that were last changed
// before the given time, in small steps. Unlike the Purge of a store it deletes failed work as well: clients do
// not come back for ever.
func (s *Store) Forget(ctx context.Context, source string, before time.Time) error {
	for {
		n, err := s.step(ctx, source, before)
		if err != nil || n < purgeStep {
			return err
		}
	}
}

// step deletes some of them, and returns how many.
func (s *Store) step(ctx context.Context, source string, before time.Time) (n int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ended(tx.Rollback()))
		}
	}()
	var cut any = before
	lock := ` FOR UPDATE`
	if s.dialect == schema.SQLite {
		cut, lock = before.UnixMicro(), ``
	}
	// Both statements choose the same claims: the first has locked them, or the whole file.
	chosen := ` WHERE (source, key) IN (SELECT source, key FROM ` + s.prefix + `claims
		WHERE source = $1 AND state <> 'processing' AND updated_at < $2 ORDER BY key LIMIT $3` + lock + `)`
	if _, err := tx.ExecContext(ctx, `DELETE FROM `+s.prefix+`responses`+chosen, source, cut, purgeStep); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, `DELETE FROM `+s.prefix+`claims`+chosen, source, cut, purgeStep)
	if err != nil {
		return 0, err
	}
	if n, err = result.RowsAffected(); err != nil {
		return 0, err
	}
	return n, tx.Commit()
}

// ended is the error of a rollback, but for one of a transaction that has ended already.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}
