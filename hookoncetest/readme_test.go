package hookoncetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
)

// readme is the endpoint of README.md.
func readme(ctx context.Context, mux *http.ServeMux, pool *pgxpool.Pool, secret string) error {
	store := pgstore.New(pool)               // or sqlstore.New(db, sqlstore.SQLite): SQLite, Postgres, MySQL, MariaDB
	if err := store.Check(ctx); err != nil { // the tables: hookonce migrate, or package schema
		return err
	}
	mux.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(secret),
		func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
			_, err := tx.Exec(ctx, `INSERT INTO payments (event, cents) VALUES ($1, $2)`, ev.Key, cents(ev))
			return err // commits with the claim, or not at all
		}))
	return nil
}

func cents(ev *hookonce.Event) (n int64) {
	var body struct {
		Data struct{ Object struct{ Amount int64 } }
	}
	if err := json.Unmarshal(ev.Body, &body); err != nil {
		return 0
	}
	return body.Data.Object.Amount
}

func countPayments(t *testing.T, pool *pgxpool.Pool, key string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM payments WHERE event = $1 AND cents = 4200", key).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReadmeStormOnReadmeMux: the storm of the README passes on its endpoint, where the README mounts it.
func TestReadmeStormOnReadmeMux(t *testing.T) {
	pool, _ := openPostgres(t)
	pgtest.Migrate(t, pool, "")
	if _, err := pool.Exec(t.Context(), "CREATE TABLE payments (event text NOT NULL, cents bigint NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := readme(t.Context(), mux, pool, "whsec_test"); err != nil {
		t.Fatal(err)
	}
	storm := hookoncetest.Storm(t, mux, provider.Stripe("whsec_test"))
	storm.Once(t, func(key string) int { return countPayments(t, pool, key) })
}

// A storm that misses the endpoint says where it looked, and what to do.
func TestStormSaysWhereItWent(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("POST /hooks", http.NotFoundHandler())
	said := watch(t, func(tb testing.TB) { hookoncetest.Storm(tb, mux, provider.Stripe("whsec_test")) })
	for _, want := range []string{"answered 404", "https://shop.example/webhooks/stripe", "URL"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q, but %s", want, said)
		}
	}
}
