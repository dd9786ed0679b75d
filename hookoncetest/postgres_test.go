package hookoncetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
)

// openPostgres returns a database with a table of effects and one of what was seen, and a count of effects.
func openPostgres(t *testing.T) (pool *pgxpool.Pool, count func(key string) int) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (event text); CREATE TABLE seen (event text PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return pool, func(key string) int {
		var n int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE event = $1", key).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
}

// TestStormOnPostgres: where copies really run side by side.
func TestStormOnPostgres(t *testing.T) {
	pool, count := openPostgres(t)
	pgtest.Migrate(t, pool, "")
	store := hookoncetest.Crash(pgstore.New(pool), hookoncetest.AfterCommit, eighths...)
	webhook := hookonce.Webhook(store, "stripe", stripe, func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		if err := hookoncetest.Fail(ctx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", ev.Key)
		return err
	}, quiet)
	storm := hookoncetest.Storm(t, webhook, stripe)
	storm.Once(t, count)
	t.Log(storm)
}

// TestStormCatchesOnPostgres: pgx has other steps than database/sql, and a storm finds them.
func TestStormCatchesOnPostgres(t *testing.T) {
	pool, count := openPostgres(t)
	got := watch(t, func(tb testing.TB) {
		storm := hookoncetest.Storm(tb, endpoint(func(ctx context.Context, event string) error {
			tag, err := pool.Exec(ctx, "INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING", event)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			_, err = pool.Exec(ctx, "INSERT INTO orders VALUES ($1)", event)
			return err
		}), stripe)
		storm.Once(tb, count)
	})
	for _, want := range []string{
		"was acknowledged and never happened: the sender hangs up at step",
		"was acknowledged and never happened: the request's context ends at step",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the test does not say %q, but:\n%s", want, got)
		}
	}
}
