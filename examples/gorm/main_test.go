package main

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/examples/internal/stripe"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/sqlstore"
)

func opened(t *testing.T) (*shop, *sqlstore.Store) {
	s, store, err := open(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if db, err := s.gorm.DB(); err == nil {
			db.Close()
		}
	})
	return s, store
}

func (s *shop) count(t *testing.T) func(string) int {
	return func(event string) int {
		var n int64
		if err := s.gorm.WithContext(t.Context()).Model(&Payment{}).Where("event = ?", event).Count(&n).Error; err != nil {
			t.Error(err)
		}
		return int(n)
	}
}

func TestPayments(t *testing.T) {
	s, store := opened(t)
	endpoint := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), s.recordPayment)
	failing := hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		return errors.Join(s.recordPayment(ctx, tx, ev), errors.New("a later step fails"))
	})
	stripe.Check(t, endpoint, failing, s.count(t))
}

// A transaction inside the handler is a savepoint: its failure leaves the rest as it is.
func TestNestedTransactions(t *testing.T) {
	s, store := opened(t)
	nested := func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		err := s.within(ctx, tx).Transaction(func(g *gorm.DB) error {
			return errors.Join(g.Create(&Payment{Event: ev.Key, Type: "nested"}).Error, errors.New("not this one"))
		})
		if err == nil {
			t.Error("the nested transaction succeeded")
		}
		return s.recordPayment(ctx, tx, ev)
	}
	failing := func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		return errors.Join(nested(ctx, tx, ev), errors.New("a later step fails"))
	}
	stripe.Check(t, hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), nested),
		hookonce.Webhook(store, "stripe", provider.Stripe(stripe.Secret), failing), s.count(t))
}
