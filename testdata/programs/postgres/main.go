// Command postgres receives Stripe's webhooks with PostgreSQL, whose tables "hookonce migrate" made. What it links is
// what such a program carries: see TestWhatProgramsCarry.
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
)

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(pgstore.New(pool), "stripe", stripe, record))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

func record(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
	_, err := tx.Exec(ctx, "INSERT INTO payments (event, type) VALUES ($1, $2)", ev.Key, ev.Type)
	return err
}
