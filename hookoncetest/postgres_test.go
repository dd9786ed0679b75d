package hookoncetest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/pgstore"
)

// TestStormOnPostgres: where copies really run side by side.
func TestStormOnPostgres(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (event text)"); err != nil {
		t.Fatal(err)
	}
	store := hookoncetest.Crash(pgstore.New(pool), hookoncetest.AfterCommit, eighths...)
	if err := pgstore.New(pool).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	webhook := hookonce.Webhook(store, stripe, func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		if err := hookoncetest.Fail(ctx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", ev.Key)
		return err
	}, quiet)
	storm := hookoncetest.Storm(t, webhook, stripe)
	storm.Once(t, func(key string) int {
		var n int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE event = $1", key).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	})
	t.Log(storm)
}
