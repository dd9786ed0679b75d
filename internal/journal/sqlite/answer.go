package sqlite

import (
	"context"
	"database/sql"

	"github.com/hookonce/hookonce/internal/journal"
)

// answersSQL says how a delivery stands.
const answersSQL = `SELECT
		coalesce((SELECT state FROM {{.}}deliveries WHERE event_id = ?1 AND destination = ?2),
			(SELECT 'done' FROM {{.}}events WHERE id = ?1), 'absent'),
		a.status, a.header, a.body
	FROM (SELECT 1) LEFT JOIN {{.}}answers a ON a.event_id = ?1 AND a.destination = ?2`

// Statuses implements [journal.Store].
func (s *Store) Statuses(ctx context.Context, targets []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	standings := make([]journal.DeliveryStatus, len(targets))
	err := s.read(ctx, "reading answers", func(tx *sql.Tx) error {
		query, err := tx.PrepareContext(ctx, s.in(answersSQL))
		if err != nil {
			return err
		}
		defer query.Close()
		for i, t := range targets {
			var status sql.Null[int]
			var a journal.Response
			err := query.QueryRowContext(ctx, t.EventID, t.Destination).Scan(&standings[i].State, &status, &a.Header, &a.Body)
			if err != nil {
				return err
			}
			if status.Valid {
				a.Status = status.V
				standings[i].Response = &a
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return standings, nil
}
