// Command outbox receives Stripe's webhooks and sends a receipt for each after the commit: the receipt is
// stored in the transaction of the claim, and a relay in the same process sends it to the mail service,
// at least once and always under the same Idempotency-Key. It needs DATABASE_URL, STRIPE_WEBHOOK_SECRET and
// MAIL_URL.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/relay"
	"github.com/hookonce/hookonce/schema"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
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
	endpoint, worker := shop(store, os.Getenv("STRIPE_WEBHOOK_SECRET"), os.Getenv("MAIL_URL"))
	if err := serve(ctx, &http.Server{Addr: "127.0.0.1:3000", Handler: endpoint}, worker.Run); err != nil {
		log.Fatal(err)
	}
}

// serve answers requests beside the work, until a signal, and then until what is under way is done. Either ends with the
// other: whatever starts the program sees the error, and starts it again.
func serve(ctx context.Context, server *http.Server, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- server.ListenAndServe()
		stop()
	}()
	working := work(ctx)
	stopping := server.Shutdown(context.Background())
	serving := <-ended
	if errors.Is(serving, http.ErrServerClosed) {
		serving = nil // by Shutdown
	}
	return errors.Join(serving, working, stopping)
}

// shop returns the endpoint for webhooks, and the relay that sends what their handler enqueues.
func shop(store *pgstore.Store, secret, mailURL string, opts ...relay.Option) (http.Handler, *relay.Relay) {
	m := &mailer{url: mailURL, client: &http.Client{Transport: hookonce.Transport(nil)}}
	worker := relay.New(store, map[string]relay.Handler{"mail.receipt": m.send}, opts...)
	endpoint := hookonce.Webhook(store, "stripe", provider.Stripe(secret), enqueueReceipt,
		hookonce.WithObserver(func(context.Context, hookonce.Observation) { worker.Wake() })) // after the commit
	return endpoint, worker
}

// enqueueReceipt commits with the claim of the event, or not at all.
func enqueueReceipt(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
	return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.receipt", Payload: []byte(ev.Key)})
}

// mailer talks to the mail service.
type mailer struct {
	url    string
	client *http.Client
}

// send makes one call. Its Idempotency-Key comes from the context: the same at every attempt.
func (m *mailer) send(ctx context.Context, e hookonce.QueuedEffect) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(e.Payload))
	if err != nil {
		return hookonce.Permanent(err)
	}
	answer, err := m.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the mail service answered %d", answer.StatusCode)
	}
	return nil
}
