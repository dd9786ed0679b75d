package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// recordDuplicatesSQL numbers the duplicate receipts of each event and kind. Two processes that come to the same number
// make one row of it, and so do all that come after the last.
const recordDuplicatesSQL = `INSERT INTO {{.}}sightings AS kept (event_id, kind, n, first_at, last_at, copies)
SELECT s.event_id, s.kind,
	least($6, 1 + (SELECT count(*) FROM {{.}}sightings k WHERE k.event_id = s.event_id AND k.kind = s.kind)),
	s.first_at, s.last_at, s.copies
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[])
	AS s (event_id, kind, first_at, last_at, copies)
WHERE EXISTS (SELECT FROM {{.}}events e WHERE e.id = s.event_id)
ORDER BY s.event_id, s.kind
ON CONFLICT (event_id, kind, n) DO UPDATE SET copies = kept.copies + excluded.copies,
	first_at = least(kept.first_at, excluded.first_at), last_at = greatest(kept.last_at, excluded.last_at)`

// RecordDuplicates implements [journal.Store].
func (s *Store) RecordDuplicates(ctx context.Context, seen []journal.DuplicateReceipt) error {
	var event, copies []int64
	var kind []string
	var first, last []time.Time
	for _, g := range seen {
		event, kind = append(event, g.EventID), append(kind, string(g.Kind))
		first, last, copies = append(first, g.First), append(last, g.Last), append(copies, int64(g.Copies))
	}
	return s.retry(ctx, "recording duplicate receipts", func() error {
		_, err := s.pool.Exec(ctx, s.in(recordDuplicatesSQL), event, kind, first, last, copies, journal.MaxReceipts)
		return err
	})
}

const duplicateReceiptsSQL = `SELECT event_id, kind, first_at, last_at, copies FROM {{.}}sightings
	WHERE event_id = $1 ORDER BY first_at, kind`

func (s *Store) duplicateReceipts(ctx context.Context, tx pgx.Tx, id int64) ([]journal.DuplicateReceipt, error) {
	return rows(ctx, tx, s.in(duplicateReceiptsSQL), []any{id}, func(row pgx.CollectableRow) (g journal.DuplicateReceipt, err error) {
		err = row.Scan(&g.EventID, &g.Kind, &g.First, &g.Last, &g.Copies)
		return g, err
	})
}
