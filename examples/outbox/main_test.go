package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/examples/internal/stripe"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/relay"
)

// A receipt is stored once for each event, and sent under one key, also when the mail service fails after it
// took the mail.
func TestReceipts(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	type mail struct{ event, key string }
	mails, faults := make(chan mail, 10), make(chan struct{}, 1)
	faults <- struct{}{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mails <- mail{string(body), r.Header.Get("Idempotency-Key")}
		select {
		case <-faults:
			w.WriteHeader(http.StatusInternalServerError) // although the mail is on its way
		default:
		}
	}))
	defer service.Close()
	endpoint, worker := shop(store, stripe.Secret, service.URL, relay.WithPoll(10*time.Millisecond),
		relay.WithSchedule(func(int) (time.Duration, bool) { return 0, true }))
	failing := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		return errors.Join(enqueueReceipt(ctx, tx, ev), errors.New("a later step fails"))
	})
	stripe.Check(t, endpoint, failing, func(event string) int { return count(t, store, event) })

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	keys := map[string]string{}
	for range 3 { // one of the two comes again
		m := <-mails
		if first, known := keys[m.event]; known && first != m.key {
			t.Errorf("%s came under %s and %s", m.event, first, m.key)
		}
		keys[m.event] = m.key
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(keys) != 2 || keys["evt_1"] == keys["evt_2"] || keys["evt_1"] == "" {
		t.Errorf("keys: %v", keys)
	}
}

// count returns how many effects an event has asked for.
func count(t *testing.T, store *pgstore.Store, event string) (n int) {
	pending, err := store.Effects(t.Context(), hookonce.StatePending, 0, 100)
	if err != nil {
		t.Error(err)
	}
	for _, e := range pending {
		if e.Key == event {
			n++
		}
	}
	return n
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
