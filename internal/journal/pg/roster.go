package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// announceSQL passes over rows that others are deleting.
const announceSQL = `WITH forgotten AS (
	DELETE FROM {{.}}gateways WHERE id IN (
		SELECT id FROM {{.}}gateways WHERE seen_at < $8 AND id <> $1 FOR UPDATE SKIP LOCKED)
)
INSERT INTO {{.}}gateways (id, host, pid, version, started_at, seen_at, destinations) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, destinations = excluded.destinations`

// Announce implements [journal.Store].
func (s *Store) Announce(ctx context.Context, g journal.Gateway, forget time.Time) error {
	return s.retry(ctx, "telling the other gateways of this one", func() error {
		_, err := s.pool.Exec(ctx, s.in(announceSQL), g.ID, g.Host, g.PID, g.Version, g.Since, g.Seen, string(g.View), forget)
		return err
	})
}

// Withdraw implements [journal.Store].
func (s *Store) Withdraw(ctx context.Context, id string) error {
	return s.retry(ctx, "telling the other gateways that this one ends", func() error {
		_, err := s.pool.Exec(ctx, s.in(`DELETE FROM {{.}}gateways WHERE id = $1`), id)
		return err
	})
}

// Gateways implements [journal.Store].
func (s *Store) Gateways(ctx context.Context) ([]journal.Gateway, error) {
	const text = `SELECT id, host, pid, version, started_at, seen_at, destinations FROM {{.}}gateways ORDER BY started_at, id`
	all, err := rows(ctx, s.pool, s.in(text), nil, func(row pgx.CollectableRow) (g journal.Gateway, err error) {
		var view string
		err = row.Scan(&g.ID, &g.Host, &g.PID, &g.Version, &g.Since, &g.Seen, &view)
		g.View = []byte(view)
		return g, err
	})
	return all, failed("reading what gateways there are", err)
}
