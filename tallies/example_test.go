package tallies_test

import (
	"context"
	"log"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/tallies"
)

func ExampleNew() {
	var ctx context.Context                                                                 // ends when the program is to stop
	var pool *pgxpool.Pool                                                                  // the application's
	var billing hookonce.Provider                                                           // a provider of the catalogue, with its secret
	handle := func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error { return nil } // the work
	store := pgstore.New(pool)

	counts := tallies.New(store)
	go func() { log.Print(counts.Run(ctx)) }()

	http.Handle("/webhooks/billing", hookonce.Webhook(store, "billing", billing, handle,
		hookonce.WithObserver(counts.Observe)))
}
