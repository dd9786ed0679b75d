package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/sqlstore"
)

// A year later the events have gone, the audit has not, and the bonus is still paid once.
func TestJanitor(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	db, store, err := open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), sqlstore.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	handle := func(source, key string) {
		t.Helper()
		ref := hookonce.Ref{Source: source, Key: key}
		_, err := store.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(tx *sql.Tx, c hookonce.Claim) error {
			return welcome(hookonce.ContextWith(context.Background(), store, c, nil), tx, &hookonce.Event{Source: source, Key: key})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	handle("stripe", "evt_1")
	handle("audit", "evt_1")
	now = now.AddDate(1, 0, 0)
	if err := cleaner(store, janitor.WithClock(clock)).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	handle("stripe", "evt_2")
	var bonuses, claims int
	if err := db.QueryRow("SELECT (SELECT count(*) FROM bonuses), (SELECT count(*) FROM hookonce_claims)").Scan(&bonuses, &claims); err != nil {
		t.Fatal(err)
	}
	if bonuses != 1 || claims != 3 { // audit evt_1, stripe evt_2, and the key of Once
		t.Errorf("%d bonuses, %d claims", bonuses, claims)
	}
	if got := purged.Get("events ").String(); got != "1" {
		t.Errorf("%s claims were purged", got)
	}
}

// A program that cannot listen ends with that, and not as if it had been told to.
func TestEndsWithItsListener(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	work := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := serve(t.Context(), &http.Server{Addr: taken.Addr().String()}, work); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it ended with %v, want %v", err, syscall.EADDRINUSE)
	}
	told, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(told, &http.Server{Addr: "127.0.0.1:0"}, work); err != nil {
		t.Errorf("told to end, it ended with %v", err)
	}
}
