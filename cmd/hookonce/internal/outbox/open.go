// Package outbox is what the command relay works with: the outbox of an application, and what posts its effects.
package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/sqlitefile"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/sqlstore"
)

// Store is an outbox without its transactions: what a relay needs, and the people who look after it and the claims beside it.
type Store interface {
	hookonce.EffectQueue
	hookonce.EffectAdmin
	hookonce.Inspector
}

// Open opens the outbox in the configured store, which applications write to with the library, and returns
// what closes it. Its tables must be there. The application may go on using a SQLite file.
func Open(ctx context.Context, cfg *config.Config) (Store, func(), error) {
	if cfg.Store.Driver == config.Postgres {
		return openPostgres(ctx, cfg)
	}
	return openSQLite(ctx, cfg)
}

func openPostgres(ctx context.Context, cfg *config.Config) (Store, func(), error) {
	where, err := pgxpool.ParseConfig(cfg.Store.DSN)
	if err != nil {
		return nil, nil, err
	}
	pgstore.FollowPrimary(where)
	pool, err := pgxpool.NewWithConfig(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	store := pgstore.New(pool, pgstore.WithSchema(cfg.Schema))
	end := func() { store.Close(); pool.Close() }
	if err := workable(ctx, pool, cfg.Schema); err != nil {
		end()
		return nil, nil, err
	}
	return store, end, nil
}

// workable is the store's Check without what is asked of who makes claims: what is there is to be worked off, whatever the
// encoding of the database is.
func workable(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	db := stdlib.OpenDBFromPool(pool)
	err := ddl.SoundForClaims(ctx, db)
	if err == nil {
		err = ddl.CheckProgram(ctx, db, ddl.Postgres, schema)
	}
	return errors.Join(err, db.Close())
}

// pragmas make a file that the application writes to as well wait for its turn, and leave its
// journal mode alone.
const pragmas = "?mode=rw&_pragma=busy_timeout(2000)&_pragma=synchronous(FULL)"

func openSQLite(ctx context.Context, cfg *config.Config) (Store, func(), error) {
	path := cfg.Store.DSN
	if err := sqlitefile.Check(path); err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("the file %s does not exist; name the application's database with --store", path)
	case err != nil:
		return nil, nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+pragmas)
	if err != nil {
		return nil, nil, err
	}
	store := sqlstore.New(db, sqlstore.SQLite, sqlstore.WithSchema(cfg.Schema))
	if err := store.Check(ctx); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return standing{store, path, info}, func() { db.Close() }, nil
}
