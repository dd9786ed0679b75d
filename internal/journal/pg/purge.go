package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// Purge implements [journal.Store]. Identifiers grow with time, so ages are read off the primary
// keys, to the millisecond. An event goes only after its body, so a body that is younger than bodies
// is deleted as well when its event is older than events, and both count against the limit. While another
// process purges, or replays, nothing is deleted. The statements see everything that was committed before
// they began, whatever the server's default is.
func (s *Store) Purge(ctx context.Context, bodies, events time.Time, limit int) (purged journal.Purged, err error) {
	forBodies := max(journal.FirstID(bodies), journal.FirstID(events))
	err = s.retry(ctx, "purging", func() error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, setDurable); err != nil {
				return err
			}
			purged = journal.Purged{}
			if mine, err := s.tryPurge(ctx, tx); err != nil || !mine {
				return err
			}
			b, err := tx.Exec(ctx, s.sql.purgeBodies, forBodies, max(limit, 0))
			if err != nil {
				return err
			}
			e, err := tx.Exec(ctx, s.sql.purgeEvents, journal.FirstID(events), max(limit, 0))
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, s.sql.purgeNewest, journal.FirstID(events), max(limit, 0))
			purged = journal.Purged{Bodies: int(b.RowsAffected()), Events: int(e.RowsAffected())}
			return err
		})
	})
	if err != nil {
		return journal.Purged{}, err
	}
	return purged, nil
}

// tryPurge reports whether nobody else is purging this schema or replaying in it. If so nobody can until the
// transaction ends, which works behind a pooler as well.
func (s *Store) tryPurge(ctx context.Context, tx pgx.Tx) (mine bool, err error) {
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}bodies")).Scan(&mine)
	return mine, err
}

// awaitPurge waits until nobody is purging, and keeps everybody from it until the transaction ends.
func (s *Store) awaitPurge(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}bodies"))
	return err
}

// Stats implements [journal.Store]. Events is what the server's statistics say: exact to the last
// ANALYZE.
func (s *Store) Stats(ctx context.Context) (journal.Stats, error) {
	stats := journal.Stats{Open: map[journal.State]int64{}}
	rows, err := s.pool.Query(ctx, s.sql.openCounts)
	if err != nil {
		return journal.Stats{}, fmt.Errorf("journal/pg: counting open work: %w", err)
	}
	var state string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		stats.Open[journal.State(state)] = n
		return nil
	}); err != nil {
		return journal.Stats{}, fmt.Errorf("journal/pg: counting open work: %w", err)
	}
	if err := s.pool.QueryRow(ctx, s.sql.events).Scan(&stats.Events); err != nil {
		return journal.Stats{}, fmt.Errorf("journal/pg: estimating events: %w", err)
	}
	return stats, nil
}
