package main

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/examples/internal/stripe"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
)

// A rollback inserts no job, copies insert one, and it is worked under the derived key.
func TestReceipts(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	sent := make(chan Receipt, 10)
	store, jobs, err := prepare(t.Context(), pool, func(_ context.Context, r Receipt) error {
		sent <- r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	handle := sendReceipt(jobs)
	endpoint := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), handle)
	failing := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		return errors.Join(handle(ctx, tx, ev), errors.New("a later step fails"))
	})
	stripe.Check(t, endpoint, failing, func(event string) (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE args->>'event' = $1", event).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	})

	if err := jobs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer jobs.Stop(context.Background())
	for range 2 {
		r := <-sent
		if want := hookonce.EffectKey(hookonce.Ref{Source: "stripe", Key: r.Event}, "receipt"); r.Key != want {
			t.Errorf("the receipt of %s has key %s, want %s", r.Event, r.Key, want)
		}
	}
}
