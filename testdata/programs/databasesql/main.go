// Command databasesql receives the webhooks of a sender that is not in the catalogue with database/sql, whose driver
// each program chooses. What it links is what such a program carries: see TestWhatProgramsCarry.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/sqlstore"
)

func main() {
	db, err := sql.Open("mysql", os.Getenv("DATABASE_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	acme := provider.HMAC(provider.HMACConfig{Name: "acme", Secrets: []string{os.Getenv("ACME_SECRET")}})
	http.Handle("POST /webhooks/acme", hookonce.Webhook(sqlstore.New(db, sqlstore.MySQL), "acme", acme, record))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

func record(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO orders (event, type) VALUES (?, ?)", ev.Key, ev.Type)
	return err
}
