package testdb

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/storetest"
)

// Postgres is a database in which every case of the suites has a schema to itself. It is for one suite at a time.
type Postgres struct {
	// Admin makes the schemas, and looks at them.
	Admin *pgxpool.Pool
	// Pool opens the connections of a store.
	Pool func(t testing.TB) *pgxpool.Pool
	// Prefix is what the names of the schemas begin with.
	Prefix string
	// Dialect is the variant of the tables; empty: PostgreSQL's.
	Dialect schema.Dialect

	made int
	free []string
	lent string // the last one
}

// Config is the suites' configuration. Cases are without faults: see [Faulty].
func (p *Postgres) Config() storetest.TxConfig[pgx.Tx] {
	return storetest.TxConfig[pgx.Tx]{Open: func(t testing.TB) storetest.Database[pgx.Tx] {
		name := p.take(t)
		effects := name + ".happened"
		var transactions atomic.Pointer[pgxpool.Pool]
		return storetest.Database[pgx.Tx]{
			Store: func(o storetest.Options) hookonce.TxStore[pgx.Tx] {
				pool := p.Pool(t)
				transactions.Store(pool)
				opts := []pgstore.Option{pgstore.WithSchema(name), pgstore.WithClock(o.Clock)}
				if o.Wait != 0 {
					opts = append(opts, pgstore.WithWait(o.Wait))
				}
				return pgstore.New(pool, opts...)
			},
			Begin:    func(ctx context.Context) (pgx.Tx, error) { return transactions.Load().Begin(ctx) },
			Commit:   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
			Rollback: func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
			Effect: func(ctx context.Context, tx pgx.Tx, id string) error {
				_, err := tx.Exec(ctx, "INSERT INTO "+effects+" VALUES ($1)", id)
				return err
			},
			Exec: func(ctx context.Context, tx pgx.Tx, statement string) error {
				_, err := tx.Exec(ctx, statement)
				return err
			},
			Effects: func(ctx context.Context) (map[string]int, error) { return Counts(ctx, p.Admin, effects) },
		}
	}}
}

// Batches is the suites' configuration for handlers that queue their statements.
func (p *Postgres) Batches() storetest.TxConfig[*pgstore.Batch] {
	return storetest.TxConfig[*pgstore.Batch]{AtCommit: true, Ahead: true, Open: func(t testing.TB) storetest.Database[*pgstore.Batch] {
		db := p.Config().Open(t)
		effects := p.lent + ".happened"
		var last atomic.Pointer[pgstore.BatchStore]
		return storetest.Database[*pgstore.Batch]{
			Store: func(o storetest.Options) hookonce.TxStore[*pgstore.Batch] {
				s := db.Store(o).(*pgstore.Store).Batches()
				last.Store(s)
				return s
			},
			Begin:    func(context.Context) (*pgstore.Batch, error) { return pgstore.NewBatch(), nil },
			Commit:   func(ctx context.Context, b *pgstore.Batch) error { return last.Load().Commit(ctx, b) },
			Rollback: func(context.Context, *pgstore.Batch) error { return nil },
			Effect: func(_ context.Context, b *pgstore.Batch, id string) error {
				b.Queue("INSERT INTO "+effects+" VALUES ($1)", id)
				return nil
			},
			Effects: db.Effects,
		}
	}}
}

// Faulty adds to cfg the faults of a proxy before the server, through which its stores connect.
func Faulty(cfg storetest.TxConfig[pgx.Tx], p *cutproxy.Proxy) storetest.TxConfig[pgx.Tx] {
	return faulty(cfg, p, IsCommit)
}

// FaultyBatches is [Faulty] for batches, whose Sync is their commit.
func FaultyBatches(cfg storetest.TxConfig[*pgstore.Batch], p *cutproxy.Proxy) storetest.TxConfig[*pgstore.Batch] {
	return faulty(cfg, p, IsSync)
}

func faulty[Tx any](cfg storetest.TxConfig[Tx], p *cutproxy.Proxy, commit func(message []byte) bool) storetest.TxConfig[Tx] {
	open := cfg.Open
	cfg.Open = func(t testing.TB) storetest.Database[Tx] {
		db := open(t)
		db.FailCommit = func(persisted bool) { p.Fail(commit, persisted) }
		db.FailWrite = func(persisted bool) { p.Fail(IsWrite, persisted) }
		return db
	}
	return cfg
}

// Pool opens a pool until t ends, and fails t if a connection stays in use.
func Pool(t testing.TB, cfg *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { pool.Close(); close(closed) }() // waits for connections in use
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Errorf("%d connections were not given back", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// take returns an empty schema that is the case's until it ends. Emptying one is much faster than making one.
func (p *Postgres) take(t testing.TB) string {
	t.Helper()
	if len(p.free) == 0 {
		p.free = append(p.free, p.create(t))
	}
	last := len(p.free) - 1
	name := p.free[last]
	p.free, p.lent = p.free[:last], name
	t.Cleanup(func() {
		if !t.Failed() { // else a connection may be stuck in it
			p.empty(t, name)
			p.free = append(p.free, name)
		}
	})
	return name
}

func (p *Postgres) create(t testing.TB) string {
	t.Helper()
	p.made++
	name := fmt.Sprintf("%s_%d", p.Prefix, p.made)
	db := stdlib.OpenDBFromPool(p.Admin)
	defer db.Close()
	dialect := p.Dialect
	if dialect == "" {
		dialect = schema.Postgres
	}
	if _, err := schema.Migrate(t.Context(), db, dialect, name); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Admin.Exec(t.Context(), "CREATE TABLE "+name+".happened (id text NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return name
}

func (p *Postgres) empty(t testing.TB, name string) {
	t.Helper()
	for _, table := range []string{"claims", "responses", "effects", "versions", "states", "tallies", "tally_hours", "tally_writers", "happened"} {
		if _, err := p.Admin.Exec(context.Background(), "DELETE FROM "+name+"."+table); err != nil {
			t.Errorf("emptying %s: %v", name, err)
		}
	}
}

// Counts returns how often each effect happened, by a table of their names.
func Counts(ctx context.Context, pool *pgxpool.Pool, table string) (map[string]int, error) {
	rows, err := pool.Query(ctx, "SELECT id, count(*) FROM "+table+" GROUP BY id")
	if err != nil {
		return nil, err
	}
	happened := map[string]int{}
	var id string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { happened[id] = n; return nil })
	return happened, err
}
