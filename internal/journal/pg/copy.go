package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/schema"
)

// ErrNoCopy says that a server is no copy of another.
var ErrNoCopy = errors.New("journal/pg: this is another database than the store's, and no copy of it; name a standby of the store")

// Copy answers questions from a standby of a [Store]'s server. It is asked through an interface that has nothing that writes.
type Copy struct {
	*Store // whose methods that write fail there
	of     *Store
}

// OpenCopy prepares questions to a standby of the store's server, which need not be there yet. Close must be called, before
// the store's.
func OpenCopy(ctx context.Context, dsn string, of *Store, o Options) (*Copy, error) {
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
	return &Copy{newStore(pool, prefix, o), of}, nil
}

// identity is the same on a server and its standbys, and on no other.
const identity = `(SELECT system_identifier::text FROM pg_control_system()) || ' ' || current_database()`

// Written returns the position in the log up to which the server has written.
func (s *Store) Written(ctx context.Context) (position uint64, err error) {
	position, _, err = s.position(ctx, `pg_current_wal_lsn()`)
	return position, err
}

// Replayed returns the position in the log up to which the copy has everything; an error that wraps [ErrNoCopy] of a server that is
// no copy. A standby that was promoted has all that it wrote.
func (c *Copy) Replayed(ctx context.Context) (position uint64, err error) {
	position, here, err := c.position(ctx, `CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END`)
	if err != nil {
		return 0, err
	}
	there, err := c.of.identity.get(ctx, c.of)
	if err == nil && here != there {
		err = ErrNoCopy
	}
	return position, err
}

// position asks for a position, and for the server's identity.
func (s *Store) position(ctx context.Context, of string) (position uint64, is string, err error) {
	var bytes int64
	err = s.pool.QueryRow(ctx, `SELECT (`+of+` - '0/0')::bigint, `+identity).Scan(&bytes, &is)
	return uint64(bytes), is, failed("asking for the position in the log", err)
}

// known is the identity of a server, once it was asked.
type known struct {
	mu sync.Mutex
	is string
}

func (k *known) get(ctx context.Context, s *Store) (is string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.is == "" {
		if _, k.is, err = s.position(ctx, `pg_current_wal_lsn()`); err != nil {
			k.is = ""
		}
	}
	return k.is, err
}
