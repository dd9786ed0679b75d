package sqlstore

import (
	"context"
	"fmt"
	"time"
)

// Purge implements [hookonce.Store]. On Postgres several purges at once share the work. A limit of
// a few thousand keeps the transaction short.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var deleted int64
	err := s.insist(ctx, func() error {
		result, err := s.db.ExecContext(ctx, s.dialect.purge, s.dialect.time(before.UTC()), limit)
		if err != nil {
			return err
		}
		deleted, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	return int(deleted), nil
}
