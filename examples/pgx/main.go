// Command pgx receives Stripe's webhooks, with pgx. It needs DATABASE_URL and STRIPE_WEBHOOK_SECRET.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store := pgstore.New(pool)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if _, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName); err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", stripe, recordPayment))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

const tables = `CREATE TABLE IF NOT EXISTS payments (event text NOT NULL, type text NOT NULL)`

// recordPayment commits with the claim of the event, or not at all.
func recordPayment(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
	_, err := tx.Exec(ctx, "INSERT INTO payments (event, type) VALUES ($1, $2)", ev.Key, ev.Type)
	return err
}
