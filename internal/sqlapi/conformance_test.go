package sqlapi

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	throwaway.Histories(30)
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	dsn := pgtest.DSN(t)
	everything(t, suite(t, dsn, pgtest.Sessions(t, dsn), onlyFunctions))
}

func everything(t *testing.T, cfg storetest.TxConfig[pgx.Tx]) {
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunGuards(t, cfg)
	storetest.RunOutbox(t, cfg)
	storetest.RunHistory(t, cfg.History())
}

// Behind a pooler consecutive transactions meet different backends.
func TestPgBouncer(t *testing.T) {
	testskip.Long(t)
	storetest.Briefly(t)
	dsn := pgtest.DSN(t)
	everything(t, suite(t, dsn, pgtest.PgBouncer(t, dsn)+"&default_query_exec_mode=exec", onlyFunctions))
}

// Programs in Go and programs that call the functions share one table, and race for the same keys.
func TestLibraryAndFunctionsTogether(t *testing.T) {
	testskip.Long(t)
	storetest.Briefly(t)
	dsn := pgtest.DSN(t)
	var opened atomic.Int64
	everything(t, suite(t, dsn, pgtest.Sessions(t, dsn), func(pool *pgxpool.Pool, schema string, o storetest.Options) hookonce.TxStore[pgx.Tx] {
		if opened.Add(1)%2 == 0 {
			return onlyFunctions(pool, schema, o)
		}
		return library(pool, schema, o)
	}))
}

func library(pool *pgxpool.Pool, schema string, o storetest.Options) *pgstore.Store {
	opts := []pgstore.Option{pgstore.WithSchema(schema), pgstore.WithClock(o.Clock)}
	if o.Wait != 0 {
		opts = append(opts, pgstore.WithWait(o.Wait))
	}
	return pgstore.New(pool, opts...)
}

func onlyFunctions(pool *pgxpool.Pool, schema string, o storetest.Options) hookonce.TxStore[pgx.Tx] {
	s := library(pool, schema, o)
	return &store{EffectQueue: s, EffectAdmin: s, pool: pool, schema: schema, clock: o.Clock, wait: o.Wait}
}

// opener opens a store on a migrated schema.
type opener func(*pgxpool.Pool, string, storetest.Options) hookonce.TxStore[pgx.Tx]

// suite is the conformance suite's configuration over one database, in which every case has a schema to
// itself. Stores connect with dsn; tables are made through admin.
func suite(t *testing.T, admin, dsn string, open opener) storetest.TxConfig[pgx.Tx] {
	pool := connect(t, admin)
	places := &schemas{pool: pool}
	return storetest.TxConfig[pgx.Tx]{Open: func(t testing.TB) storetest.Database[pgx.Tx] {
		schema := places.take(t)
		effects := schema + ".happened"
		var transactions atomic.Pointer[pgxpool.Pool]
		return storetest.Database[pgx.Tx]{
			Store: func(o storetest.Options) hookonce.TxStore[pgx.Tx] {
				p := connect(t, dsn)
				transactions.Store(p)
				return open(p, schema, o)
			},
			Begin:    func(ctx context.Context) (pgx.Tx, error) { return transactions.Load().Begin(ctx) },
			Commit:   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
			Rollback: func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
			Effect: func(ctx context.Context, tx pgx.Tx, id string) error {
				_, err := tx.Exec(ctx, "INSERT INTO "+effects+" VALUES ($1)", id)
				return err
			},
			Effects: func(ctx context.Context) (map[string]int, error) { return testdb.Counts(ctx, pool, effects) },
		}
	}}
}

// schemas are made for cases that follow each other, and emptied for the next one, which is faster.
type schemas struct {
	pool *pgxpool.Pool
	made int
	free []string
}

// take returns an empty schema that is the case's until it ends.
func (s *schemas) take(t testing.TB) (name string) {
	t.Helper()
	if len(s.free) == 0 {
		s.free = append(s.free, s.create(t))
	}
	last := len(s.free) - 1
	name, s.free = s.free[last], s.free[:last]
	t.Cleanup(func() {
		if t.Failed() { // a connection may be stuck in it
			return
		}
		for _, table := range []string{"claims", "responses", "effects", "versions", "states", "happened"} {
			if _, err := s.pool.Exec(context.Background(), "DELETE FROM "+name+"."+table); err != nil {
				t.Errorf("emptying %s: %v", name, err)
			}
		}
		s.free = append(s.free, name)
	})
	return name
}

func (s *schemas) create(t testing.TB) string {
	t.Helper()
	s.made++
	name := fmt.Sprintf("case_%d", s.made)
	migrate(t, s.pool, name)
	if err := withTestClock(t.Context(), s.pool, name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.pool, "CREATE TABLE "+name+".happened (id text NOT NULL)")
	return name
}

// connect returns a pool, and fails the test if a connection stays in use at its end.
func connect(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
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

func migrate(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	pgtest.Migrate(t, pool, schema)
}

func mustExec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
