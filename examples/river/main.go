// Command river receives Stripe's webhooks and has River send the receipts. The job is inserted in the
// transaction that claims the event: one job for each event, however often it is sent, and none for a
// handler that fails. It needs DATABASE_URL and STRIPE_WEBHOOK_SECRET.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

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
	store, jobs, err := prepare(ctx, pool, func(ctx context.Context, r Receipt) error {
		log.Printf("a receipt for %s, under the key %s", r.Event, r.Key)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.Start(ctx); err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", stripe, sendReceipt(jobs)))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

// Receipt is the job. River works a job at least once: Key is the same each time, for whoever sends mails.
type Receipt struct {
	Event string `json:"event"`
	Key   string `json:"key"`
}

// Kind implements [river.JobArgs].
func (Receipt) Kind() string { return "receipt" }

// mailer works the jobs.
type mailer struct {
	river.WorkerDefaults[Receipt]
	send func(context.Context, Receipt) error
}

// Work implements [river.Worker].
func (m *mailer) Work(ctx context.Context, job *river.Job[Receipt]) error {
	return m.send(ctx, job.Args)
}

// prepare creates the tables of both.
func prepare(ctx context.Context, pool *pgxpool.Pool, send func(context.Context, Receipt) error) (*pgstore.Store, *river.Client[pgx.Tx], error) {
	store := pgstore.New(pool)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if _, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName); err != nil {
		return nil, nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &mailer{send: send})
	jobs, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers: workers,
	})
	return store, jobs, err
}

// sendReceipt inserts the job in the transaction of the claim.
func sendReceipt(jobs *river.Client[pgx.Tx]) func(context.Context, pgx.Tx, *hookonce.Event) error {
	return func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		_, err := jobs.InsertTx(ctx, tx, Receipt{Event: ev.Key, Key: hookonce.EffectKey(ev.Ref(), "receipt")}, nil)
		return err
	}
}
