// Command gateway is a shop behind hookonce's gateway, with pgx: each payment is booked once, however often its event
// is delivered. It needs DATABASE_URL and SHOP_SECRET (several, with spaces between, while one is replaced).
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

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
	gateway := provider.Hookonce(strings.Fields(os.Getenv("SHOP_SECRET"))...)
	http.Handle("POST /hooks", hookonce.Webhook(store, "shop", gateway, book))

	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// book commits with the claim of the event, which has the source and the key that the gateway has it under.
func book(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
	var stripe struct {
		Data struct {
			Object struct {
				ID, Status string
				Amount     int64
			}
		}
	}
	if err := json.Unmarshal(ev.Body, &stripe); err != nil {
		return hookonce.Permanent(err) // no retry changes that
	}
	payment := stripe.Data.Object
	if _, err := tx.Exec(ctx, "INSERT INTO payments (source, event_id, payment, cents) VALUES ($1, $2, $3, $4)",
		ev.Source, ev.Key, payment.ID, payment.Amount); err != nil {
		return err
	}
	newer, err := hookonce.Newer(ctx, tx, ev)
	if err != nil || !newer {
		return err // a newer state was applied: nothing to do, and nothing wrong
	}
	_, err = tx.Exec(ctx, `INSERT INTO states (payment, status, event_id) VALUES ($1, $2, $3)
		ON CONFLICT (payment) DO UPDATE SET status = excluded.status, event_id = excluded.event_id`, payment.ID, payment.Status, ev.Key)
	return err
}
