package sqlstore

import (
	"context"
	"fmt"
	"time"
)

// Purge implements [hookonce.Store]. It deletes the claims' responses with them. On Postgres several purges
// at once share the work; elsewhere they take turns. A limit of a few thousand keeps the transaction short.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var deleted int64
	err := s.insist(ctx, func() (err error) {
		deleted, err = s.dialect.purge(s.dialect, ctx, s.db, before.UTC(), limit)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", s.explain(ctx, s.db, err))
	}
	return int(deleted), nil
}
