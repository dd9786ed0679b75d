package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A webhook endpoint whose effect commits together with the record that the event was handled.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store := pgstore.New(pool)
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, stripe,
		func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
			_, err := tx.Exec(ctx, "UPDATE orders SET paid = true WHERE payment = $1", ev.Resource)
			return err
		}))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

// A message from a queue, handled once although the queue delivers it at least once.
func ExampleStore_Within() {
	handle := func(ctx context.Context, store *pgstore.Store, id string, amount int) error {
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "payouts", Key: hookonce.NormalKey(id)}}
		c, err := store.Within(ctx, req, func(tx pgx.Tx, _ hookonce.Claim) error {
			_, err := tx.Exec(ctx, "INSERT INTO payouts (message, amount) VALUES ($1, $2)", id, amount)
			return err
		})
		if err == nil && c.Verdict == hookonce.Busy {
			err = hookonce.ErrBusy // another worker has it: let the queue deliver it again
		}
		return err
	}
	_ = handle
}

// A claim in a transaction that is already there, next to other work.
func ExampleStore_ClaimTx() {
	handle := func(ctx context.Context, tx pgx.Tx, store *pgstore.Store, key string) error {
		c, err := store.ClaimTx(ctx, tx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "imports", Key: key}})
		switch {
		case err != nil:
			return err // roll back
		case c.Verdict == hookonce.Duplicate:
			return nil
		case c.Verdict == hookonce.Busy:
			return hookonce.ErrBusy
		}
		_, err = tx.Exec(ctx, "INSERT INTO imports (key) VALUES ($1)", key)
		return err
	}
	_ = handle
}

// An effect that can not share the transaction: the token tells whether the claim is still ours.
func ExampleStore_Claim() {
	send := func(ctx context.Context, store *pgstore.Store, key string, post func(idempotencyKey string) error) error {
		c, err := store.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "mail", Key: key}, Lease: time.Minute})
		switch {
		case err != nil:
			return err
		case c.Verdict == hookonce.Duplicate:
			return nil
		case c.Verdict == hookonce.Busy:
			return hookonce.ErrBusy
		}
		if err := post(fmt.Sprint("mail/", key)); err != nil {
			return errors.Join(err, store.Fail(context.WithoutCancel(ctx), c, hookonce.Failure{Err: err}))
		}
		return store.Complete(context.WithoutCancel(ctx), c)
	}
	_ = send
}
