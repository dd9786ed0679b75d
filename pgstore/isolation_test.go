package pgstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

// Under the stricter isolation levels the loser of a race is told so by an error instead of by what
// it reads.
func TestRepeatableRead(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	dsn := pgtest.DSN(t)
	cfg := suite(t, dsn, dsn, "default_transaction_isolation=repeatable%20read")
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	abilities(t, cfg)
}

func TestSerializable(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	dsn := pgtest.DSN(t)
	cfg := suite(t, dsn, dsn, "default_transaction_isolation=serializable")
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	abilities(t, cfg)
}

// A caller whose snapshot is older than what another transaction committed meanwhile is refused in the words
// of the server, on which programs that use these levels try again. Any answer would be a wrong one.
func TestOldSnapshotsAreRefused(t *testing.T) {
	asks := map[string]func(*pgstore.Store, pgx.Tx) error{
		"Newer": func(s *pgstore.Store, tx pgx.Tx) error {
			_, err := s.Newer(t.Context(), tx, "order", hookonce.Version(2))
			return err
		},
		"Transition": func(s *pgstore.Store, tx pgx.Tx) error {
			_, _, err := s.Transition(t.Context(), tx, "order", "", "paid")
			return err
		},
		"Enqueue": func(s *pgstore.Store, tx pgx.Tx) error {
			return s.Enqueue(t.Context(), tx, hookonce.Effect{Ref: request("evt_1").Ref, Name: "mail"})
		},
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for name, ask := range asks {
			t.Run(fmt.Sprint(name, " ", level), func(t *testing.T) {
				store, pool := newStore(t)
				err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), "SELECT 1"); err != nil { // takes the snapshot
						return err
					}
					err := pgx.BeginFunc(t.Context(), pool, func(first pgx.Tx) error { return ask(store, first) })
					if err != nil {
						t.Fatal(err)
					}
					return ask(store, tx)
				})
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != "40001" {
					t.Errorf("error is %v, want SQLSTATE 40001", err)
				}
			})
		}
	}
}

// Copies at once under SERIALIZABLE: the server may refuse a commit for the sake of another event's,
// which is a failed attempt that a retry mends. In the end each effect happened once.
func TestSerializableStorm(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := open(t, dsn, "default_transaction_isolation=serializable&pool_max_conns=8")
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	const events, copies = 20, 6
	var g errgroup.Group
	for range copies {
		g.Go(func() error {
			for i := range events {
				if err := deliver(t, store, fmt.Sprint("evt_", i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	happened, err := testdb.Counts(t.Context(), pool, "effects")
	if err != nil || len(happened) != events {
		t.Errorf("%d events had effects, %v; want %d", len(happened), err, events)
	}
	for id, n := range happened {
		if n != 1 {
			t.Errorf("%s happened %d times", id, n)
		}
	}
}

// deliver retries like a sender until the event is acknowledged.
func deliver(t *testing.T, store *pgstore.Store, key string) error {
	for {
		c, err := store.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
			return effect(t.Context(), tx, key)
		})
		var refused *pgconn.PgError
		if c.Verdict == hookonce.Busy {
			continue
		}
		if err != nil && (!errors.As(err, &refused) || refused.Code != "40001" || errors.Is(err, hookonce.ErrUnknownOutcome)) {
			return err
		}
		if err == nil {
			return nil
		}
	}
}
