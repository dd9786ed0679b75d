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
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
)

func TestPayments(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	if _, err := pool.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	endpoint := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), recordPayment)
	failing := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		return errors.Join(recordPayment(ctx, tx, ev), errors.New("a later step fails"))
	})
	stripe.Check(t, endpoint, failing, func(event string) (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM payments WHERE event = $1", event).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	})
}
