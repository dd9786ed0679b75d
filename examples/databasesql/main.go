// Command databasesql receives Stripe's webhooks, with database/sql on SQLite. It needs
// STRIPE_WEBHOOK_SECRET.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

func main() {
	db, err := open("shop.db")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := prepare(context.Background(), db)
	if err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", stripe, recordPayment))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

func open(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)")
}

// prepare creates the tables.
func prepare(ctx context.Context, db *sql.DB) (*sqlstore.Store, error) {
	store := sqlstore.New(db, sqlstore.SQLite)
	if _, err := schema.Migrate(ctx, db, schema.SQLite, schema.DefaultName); err != nil {
		return nil, err
	}
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS payments (event TEXT NOT NULL, type TEXT NOT NULL)`)
	return store, err
}

// recordPayment commits with the claim of the event, or not at all.
func recordPayment(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO payments (event, type) VALUES (?, ?)", ev.Key, ev.Type)
	return err
}
