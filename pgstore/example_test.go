package pgstore_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
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
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if _, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName); err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", stripe,
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
		_, err := store.Within(ctx, req, func(tx pgx.Tx, _ hookonce.Claim) error {
			_, err := tx.Exec(ctx, "INSERT INTO payouts (message, amount) VALUES ($1, $2)", id, amount)
			return err
		})
		return err // nil: acknowledge. Otherwise let the queue deliver it again, also if another worker has it (ErrBusy)
	}
	_ = handle
}

// A handler that queues what it writes: claim, effect and commit are one round trip. It reads nothing: the new balance is
// computed in SQL, and an account that is not there fails the batch.
func ExampleStore_Batches() {
	endpoint := func(store *pgstore.Store, secret string) http.Handler {
		return hookonce.Webhook(store.Batches(), "stripe", provider.Stripe(secret),
			func(ctx context.Context, b *pgstore.Batch, ev *hookonce.Event) error {
				var invoice struct {
					Data struct {
						Object struct {
							Customer   string
							AmountPaid int64 `json:"amount_paid"`
						}
					}
				}
				if err := json.Unmarshal(ev.Body, &invoice); err != nil {
					return hookonce.Permanent(err)
				}
				paid := invoice.Data.Object
				b.Queue("INSERT INTO payments (event, customer, cents) VALUES ($1, $2, $3)", ev.Key, paid.Customer, paid.AmountPaid)
				b.Queue(`WITH account AS (UPDATE accounts SET cents = cents + $2 WHERE customer = $1 RETURNING 1)
					SELECT 1 / count(*) FROM account`, paid.Customer, paid.AmountPaid)
				return nil
			})
	}
	_ = endpoint
}

// A batch whose handler looks at a result. The function's error rolls everything back.
func ExampleBatch_Queue() {
	handle := func(ctx context.Context, b *pgstore.Batch, ev *hookonce.Event) error {
		b.Queue("UPDATE orders SET paid = true WHERE payment = $1 AND NOT paid", ev.Resource).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return errors.New("there is no open order for this payment")
			}
			return nil
		})
		return nil
	}
	_ = handle
}

// Claims and more in a batch of the caller's.
func ExampleNewBatch() {
	load := func(ctx context.Context, store *pgstore.BatchStore, keys []string) error {
		b := pgstore.NewBatch()
		for _, key := range keys {
			c, err := store.ClaimTx(ctx, b, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "imports", Key: key}})
			if err != nil {
				return err
			}
			if c.Verdict == hookonce.Acquired {
				b.Queue("INSERT INTO imports (key) VALUES ($1)", key)
			}
		}
		return store.Commit(ctx, b) // ErrBusy: another worker has taken one of them meanwhile, and nothing was done
	}
	_ = load
}

// A claim in a transaction that is already there, next to other work.
func ExampleStore_ClaimTx() {
	handle := func(ctx context.Context, tx pgx.Tx, store *pgstore.Store, key string) error {
		c, err := store.ClaimTx(ctx, tx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "imports", Key: key}})
		switch {
		case err != nil:
			return err // roll back; ErrBusy: another worker has it
		case c.Verdict == hookonce.Duplicate:
			return nil
		}
		_, err = tx.Exec(ctx, "INSERT INTO imports (key) VALUES ($1)", key)
		return err
	}
	_ = handle
}

// An effect that cannot share the transaction: the token tells whether the claim is still ours.
func ExampleStore_Claim() {
	send := func(ctx context.Context, store *pgstore.Store, key string, post func(idempotencyKey string) error) error {
		c, err := store.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "mail", Key: key}, Lease: time.Minute})
		switch {
		case err != nil:
			return err
		case c.Verdict == hookonce.Duplicate:
			return nil
		case c.Verdict != hookonce.Acquired:
			return cmp.Or(c.Verdict.Err(), errors.New("it has no key, and cannot be done once"))
		}
		if err := post(fmt.Sprint("mail/", key)); err != nil {
			return errors.Join(err, store.Fail(context.WithoutCancel(ctx), c, hookonce.Failure{Err: err}))
		}
		return store.Complete(context.WithoutCancel(ctx), c)
	}
	_ = send
}

// Events of one order may arrive in any order. What is older than what was applied changes nothing.
func ExampleStore_Newer() {
	apply := func(ctx context.Context, tx pgx.Tx, store *pgstore.Store, order string, version int64, status string) error {
		newer, err := store.Newer(ctx, tx, "order/"+order, hookonce.Version(version))
		if err != nil || !newer {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE orders SET status = $2 WHERE id = $1", order, status)
		return err
	}
	_ = apply
}

// Two different events say that the order was paid. The goods leave once.
func ExampleStore_Transition() {
	ship := func(ctx context.Context, tx pgx.Tx, store *pgstore.Store, order string) error {
		state, move, err := store.Transition(ctx, tx, "order/"+order, "open", "paid")
		if err != nil {
			return err
		}
		switch move {
		case hookonce.Moved:
			_, err = tx.Exec(ctx, "INSERT INTO shipments (order_id) VALUES ($1)", order)
			return err
		case hookonce.AlreadyThere:
			return nil // by the other event
		}
		return fmt.Errorf("order %s is %q and cannot be paid", order, state)
	}
	_ = ship
}

// A mail that is sent after the commit, and only if there is one.
func ExampleStore_Enqueue() {
	register := func(ctx context.Context, store *pgstore.Store, id, address string) error {
		ref := hookonce.Ref{Source: "signups", Key: hookonce.NormalKey(id)}
		_, err := store.Within(ctx, hookonce.ClaimRequest{Ref: ref}, func(tx pgx.Tx, _ hookonce.Claim) error {
			if _, err := tx.Exec(ctx, "INSERT INTO users (address) VALUES ($1)", address); err != nil {
				return err
			}
			return store.Enqueue(ctx, tx, hookonce.Effect{Ref: ref, Name: "mail.welcome", Payload: []byte(address)})
		})
		return err
	}
	_ = register
}

// What a relay does with the outbox. Package relay does it with retries, dead letters and many at once.
func ExampleStore_TakeEffects() {
	relay := func(ctx context.Context, store *pgstore.Store, send func(address string) error) error {
		effects, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail.welcome"}, Limit: 10, Lease: time.Minute})
		if err != nil {
			return err
		}
		for _, e := range effects {
			outcome := func(ctx context.Context) error { return store.CompleteEffect(ctx, e) }
			if err := send(string(e.Payload)); err != nil {
				failure := hookonce.Failure{Err: err, Dead: e.Tries >= 5}
				outcome = func(ctx context.Context) error {
					return store.FailEffect(ctx, e, failure, time.Now().Add(time.Minute))
				}
			}
			if err := outcome(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
	_ = relay
}

// A long job that answers every copy of its request with the same. While somebody works on it, others wait.
func ExampleStore_CompleteWith() {
	run := func(ctx context.Context, store *pgstore.Store, key string, job func() (hookonce.Response, error)) (hookonce.Response, error) {
		ref := hookonce.Ref{Source: "reports", Key: hookonce.NormalKey(key)}
		for {
			c, err := store.Claim(ctx, hookonce.ClaimRequest{Ref: ref, Lease: 10 * time.Minute})
			switch {
			case err != nil:
				return hookonce.Response{}, err
			case c.Verdict == hookonce.Duplicate:
				return store.Response(ctx, ref)
			case c.Verdict == hookonce.Busy:
				if err := store.Await(ctx, ref); err != nil {
					return hookonce.Response{}, err
				}
				continue
			case c.Verdict != hookonce.Acquired:
				return hookonce.Response{}, cmp.Or(c.Verdict.Err(), errors.New("it has no key, and cannot be done once"))
			}
			r, err := job()
			if err != nil {
				return r, errors.Join(err, store.Fail(context.WithoutCancel(ctx), c, hookonce.Failure{Err: err}))
			}
			return r, store.CompleteWith(context.WithoutCancel(ctx), c, r)
		}
	}
	_ = run
}

// A pool on three servers, of which one is the primary at a time.
func ExampleFollowPrimary() {
	ctx := context.Background()
	cfg, err := pgxpool.ParseConfig("postgres://app@pg1,pg2,pg3/shop?target_session_attrs=read-write")
	if err != nil {
		log.Fatal(err)
	}
	pgstore.FollowPrimary(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store := pgstore.New(pool)
	fmt.Println(store.Check(ctx))
}
