package hookoncetest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/provider"
)

var stripe = provider.Stripe("whsec_test")

// shop is a database with a table of effects, and one in which handlers remember what they have seen. The
// effects have no unique index, as in reality.
type shop struct{ *sql.DB }

func openShop(t *testing.T) shop {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, text := range []string{"CREATE TABLE orders (event TEXT)", "CREATE TABLE seen (event TEXT PRIMARY KEY)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return shop{db}
}

// count is what tests count effects with.
func (s shop) count(t testing.TB) func(key string) int {
	return func(key string) int {
		var n int
		if err := s.QueryRow("SELECT count(*) FROM orders WHERE event = ?", key).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
}

// execer is the database or a transaction of it.
type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

// book is the effect.
func book(ctx context.Context, db execer, event string) error {
	if err := hookoncetest.Fail(ctx); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "INSERT INTO orders VALUES (?)", event)
	return err
}

// seen reports whether the event is remembered.
func (s shop) seen(ctx context.Context, event string) (bool, error) {
	var n int
	err := s.QueryRowContext(ctx, "SELECT count(*) FROM seen WHERE event = ?", event).Scan(&n)
	return n > 0, err
}

// remember remembers the event, and reports whether it was new.
func remember(ctx context.Context, db execer, event string) (bool, error) {
	res, err := db.ExecContext(ctx, "INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING", event)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// endpoint verifies a request and answers 200 if handle returns no error, and 500 if it does.
func endpoint(handle func(ctx context.Context, event string) error) http.Handler {
	return endpointOf(func(ctx context.Context, event, _, _ string) error { return handle(ctx, event) })
}

// endpointOf is endpoint for those who look at more than the event's id.
func endpointOf(handle func(ctx context.Context, event, body, signature string) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		if _, err := stripe.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: now()}); err != nil {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		var event struct{ ID string }
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		if err := handle(r.Context(), event.ID, string(body), r.Header.Get("Stripe-Signature")); err != nil {
			http.Error(w, "", http.StatusInternalServerError)
		}
	})
}
