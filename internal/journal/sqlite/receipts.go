package sqlite

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// recordDuplicatesSQL numbers the duplicate receipts of each event and kind; what comes after the last adds to it.
const recordDuplicatesSQL = `INSERT INTO {{.}}sightings (event_id, kind, n, first_at, last_at, copies)
	SELECT ?1, ?2, min(?6, 1 + (SELECT count(*) FROM {{.}}sightings WHERE event_id = ?1 AND kind = ?2)), ?3, ?4, ?5
	WHERE EXISTS (SELECT 1 FROM {{.}}events WHERE id = ?1)
	ON CONFLICT (event_id, kind, n) DO UPDATE SET copies = copies + excluded.copies, last_at = max(last_at, excluded.last_at)`

// RecordDuplicates implements [journal.Store].
func (s *Store) RecordDuplicates(ctx context.Context, seen []journal.DuplicateReceipt) error {
	return s.write(ctx, "recording duplicate receipts", func(w *writer) error {
		return w.with(s.in(recordDuplicatesSQL), func(record *stmt) error {
			for _, g := range seen {
				if _, err := record.exec(g.EventID, string(g.Kind), g.First.UnixMicro(), g.Last.UnixMicro(),
					int64(g.Copies), int64(journal.MaxReceipts)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

const duplicateReceiptsSQL = `SELECT event_id, kind, first_at, last_at, copies FROM {{.}}sightings
	WHERE event_id = ? ORDER BY first_at, kind`

func (s *Store) duplicateReceipts(ctx context.Context, db reader, id int64) ([]journal.DuplicateReceipt, error) {
	return rows(ctx, db, s.in(duplicateReceiptsSQL), []any{id}, func(row scanner) (g journal.DuplicateReceipt, err error) {
		var first, last int64
		err = row.Scan(&g.EventID, &g.Kind, &first, &last, &g.Copies)
		g.First, g.Last = time.UnixMicro(first), time.UnixMicro(last)
		return g, err
	})
}
