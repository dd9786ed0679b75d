package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/schema"
)

// Copy answers questions from a standby of a [Store]'s server. It is asked through an interface that has nothing that writes.
type Copy struct {
	*Store // whose methods that write fail there
}

// OpenCopy prepares questions to a standby of a store's server, which need not be there yet. Close must be called.
func OpenCopy(ctx context.Context, dsn string, o Options) (*Copy, error) {
	prefix, err := ddl.Prefix(schema.Postgres, o.Schema)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("journal/pg: %w", err)
	}
	limits(cfg, dsn, o)
	cfg.AfterConnect = registerBytes
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("journal/pg: %w", err)
	}
	return &Copy{newStore(pool, prefix, o)}, nil
}

// Written returns how far the server has written its log.
func (s *Store) Written(ctx context.Context) (pgstandby.Written, error) {
	w, err := pgstandby.ScanWritten(s.pool.QueryRow(ctx, pgstandby.WrittenSQL))
	return w, failed("asking for the position in the log", err)
}

// Replayed returns how far the copy has the log.
func (c *Copy) Replayed(ctx context.Context) (pgstandby.Replayed, error) {
	r, err := pgstandby.ScanReplayed(c.pool.QueryRow(ctx, pgstandby.ReplayedSQL))
	return r, failed("asking for the position in the log", err)
}
