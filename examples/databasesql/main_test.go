package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/examples/internal/stripe"
	"github.com/hookonce/hookonce/provider"
)

func TestPayments(t *testing.T) {
	db, err := open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := prepare(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), recordPayment)
	failing := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		return errors.Join(recordPayment(ctx, tx, ev), errors.New("a later step fails"))
	})
	stripe.Check(t, endpoint, failing, func(event string) (n int) {
		if err := db.QueryRow("SELECT count(*) FROM payments WHERE event = ?", event).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	})
}
