package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// holders are the ways in which a claim stays in a transaction for as long as its owner likes. Each
// calls then while it holds req.
var holders = map[string]func(ctx context.Context, pool *pgxpool.Pool, req hookonce.ClaimRequest, then func()) error{
	"Within": func(ctx context.Context, pool *pgxpool.Pool, req hookonce.ClaimRequest, then func()) error {
		_, err := pgstore.New(pool).Within(ctx, req, func(pgx.Tx, hookonce.Claim) error { then(); return nil })
		return err
	},
	"ClaimTx": func(ctx context.Context, pool *pgxpool.Pool, req hookonce.ClaimRequest, then func()) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := pgstore.New(pool).ClaimTx(ctx, tx, req)
			then()
			return err
		})
	},
	"sqlstore": func(ctx context.Context, pool *pgxpool.Pool, req hookonce.ClaimRequest, then func()) error {
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close()
		_, err := sqlstore.New(db, sqlstore.Postgres).Within(ctx, req, func(*sql.Tx, hookonce.Claim) error { then(); return nil })
		return err
	},
}

// A copy in another process waits no longer than WithWait, whoever holds the key and however: the
// holder goes on only when the copy was told that it is busy.
func TestCopyWaitsNoLongerThanItsWait(t *testing.T) {
	for name, hold := range holders {
		t.Run(name, func(t *testing.T) {
			_, pool := newStore(t)
			failed := pgstore.New(pool)
			if _, err := failed.Within(t.Context(), request("tried"), failing); err == nil {
				t.Fatal("the handler's error is gone")
			}
			for _, key := range []string{"fresh", "tried"} {
				err := hold(t.Context(), pool, request(key), func() { mustBeBusy(t, pool, key) })
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
				mustClaim(t, failed, key, hookonce.Duplicate)
			}
		})
	}
}

func failing(pgx.Tx, hookonce.Claim) error { return context.Canceled }

// mustBeBusy claims in every way that is bounded. The deadline only ends a test that would hang.
func mustBeBusy(t *testing.T, pool *pgxpool.Pool, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other := pgstore.New(pool, pgstore.WithWait(time.Millisecond))
	for range 2 { // the second finds the statements prepared
		c, err := other.Within(ctx, request(key), func(pgx.Tx, hookonce.Claim) error { return nil })
		if !errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Busy {
			t.Errorf("Within(%s) = %v, %v", key, c.Verdict, err)
		}
		c, err = other.Claim(ctx, request(key))
		if err != nil || c.Verdict != hookonce.Busy {
			t.Errorf("Claim(%s) = %v, %v", key, c.Verdict, err)
		}
	}
}

// Keys whose locks have the same number by chance are different keys all the same. Here somebody
// else's lock stands for the other key's.
func TestForeignLockUnderTheSameNumber(t *testing.T) {
	store, pool := newStore(t, pgstore.WithWait(time.Millisecond))
	mustClaim(t, store, "done", hookonce.Acquired)
	lock := func(tx pgx.Tx, key string) {
		t.Helper()
		_, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock("+claimsql.KeyLock(`"hookonce".`, "$1::text", "$2::text")+")", "billing", key)
		if err != nil {
			t.Fatal(err)
		}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		lock(tx, "done")
		lock(tx, "new")
		mustClaim(t, store, "done", hookonce.Duplicate) // what is finished needs no lock
		mustClaim(t, store, "new", hookonce.Busy)
		mustClaim(t, store, "other", hookonce.Acquired)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, store, "new", hookonce.Acquired)
}
