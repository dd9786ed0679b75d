package pgstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	throwaway.Histories(30)
	goleak.VerifyTestMain(m)
}

// open returns a pool with the given further parameters of a connection string, such as
// "default_query_exec_mode=exec". It fails the test if a connection stays in use at the end.
func open(t testing.TB, dsn, parameters string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn+"&"+parameters)
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

// newStore returns a store over a fresh database and its pool.
func newStore(t testing.TB, opts ...pgstore.Option) (*pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool := open(t, pgtest.DSN(t), "")
	s := pgstore.New(pool, opts...)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	return s, pool
}

func mustExec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// suite is the conformance suite's configuration over one database, in which every case has a schema
// to itself. Stores connect with dsn and parameters; tables are made through admin.
func suite(t *testing.T, admin, dsn, parameters string) storetest.TxConfig[pgx.Tx] {
	pool := open(t, admin, "")
	places := &schemas{pool: pool}
	return storetest.TxConfig[pgx.Tx]{Open: func(t testing.TB) storetest.Database[pgx.Tx] {
		schema := places.take(t)
		effects := schema + ".happened"
		var transactions atomic.Pointer[pgxpool.Pool]
		return storetest.Database[pgx.Tx]{
			Store: func(o storetest.Options) hookonce.TxStore[pgx.Tx] {
				p := open(t, dsn, parameters)
				transactions.Store(p)
				opts := []pgstore.Option{pgstore.WithSchema(schema), pgstore.WithClock(o.Clock)}
				if o.Wait != 0 {
					opts = append(opts, pgstore.WithWait(o.Wait))
				}
				return pgstore.New(p, opts...)
			},
			Begin:    func(ctx context.Context) (pgx.Tx, error) { return transactions.Load().Begin(ctx) },
			Commit:   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
			Rollback: func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
			Effect: func(ctx context.Context, tx pgx.Tx, id string) error {
				_, err := tx.Exec(ctx, "INSERT INTO "+effects+" VALUES ($1)", id)
				return err
			},
			Effects: func(ctx context.Context) (map[string]int, error) { return counts(ctx, pool, effects) },
		}
	}}
}

// schemas makes schemas for cases that follow each other. Emptying one is much faster than making one.
type schemas struct {
	pool *pgxpool.Pool
	made int
	free []string
}

// take returns an empty schema that is the case's until it ends.
func (s *schemas) take(t testing.TB) string {
	t.Helper()
	if len(s.free) == 0 {
		s.free = append(s.free, s.create(t))
	}
	last := len(s.free) - 1
	name := s.free[last]
	s.free = s.free[:last]
	t.Cleanup(func() {
		if !t.Failed() { // else a connection may be stuck in it
			s.empty(t, name)
			s.free = append(s.free, name)
		}
	})
	return name
}

func (s *schemas) create(t testing.TB) string {
	t.Helper()
	s.made++
	name := fmt.Sprintf("case_%d", s.made)
	pgtest.Migrate(t, s.pool, name)
	mustExec(t, s.pool, "CREATE TABLE "+name+".happened (id text NOT NULL)")
	return name
}

func (s *schemas) empty(t testing.TB, name string) {
	t.Helper()
	for _, table := range []string{"claims", "responses", "effects", "versions", "states", "tallies", "tally_hours", "tally_writers", "happened"} {
		if _, err := s.pool.Exec(context.Background(), "DELETE FROM "+name+"."+table); err != nil {
			t.Errorf("emptying %s: %v", name, err)
		}
	}
}

// counts returns how often each effect happened.
func counts(ctx context.Context, pool *pgxpool.Pool, table string) (map[string]int, error) {
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

func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}}
}
