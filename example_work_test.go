package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// work runs f as a handler runs: in a transaction, for the event with that key.
func work(store *memstore.Store, key string, f func(ctx context.Context, tx *memstore.Tx) error) {
	ctx := context.Background()
	ev := &hookonce.Event{Source: "shop", Key: key, Type: "order.paid"}
	_, err := store.Within(ctx, hookonce.ClaimRequest{Ref: ev.Ref()}, func(tx *memstore.Tx, c hookonce.Claim) error {
		return f(hookonce.ContextWith(ctx, store, c, ev), tx)
	})
	if err != nil {
		fmt.Println(err)
	}
}

// What a consumer of a queue does, so that its handlers can use everything that those of Webhook can. It
// acknowledges a message when Within returns no error: then the work is done, by this delivery or by an
// earlier one. While another worker holds the message the error is ErrBusy, and the queue delivers it again.
func ExampleContextWith() {
	ctx, store := context.Background(), memstore.New(memstore.WithWait(time.Millisecond))
	consume := func(id string) error {
		message := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "queue", Key: id}}
		_, err := store.Within(ctx, message, func(tx *memstore.Tx, c hookonce.Claim) error {
			ctx := hookonce.ContextWith(ctx, store, c, nil)
			return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.receipt"})
		})
		return err // nil: acknowledge
	}
	elsewhere, _ := store.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "queue", Key: "message-1"}})
	fmt.Println("acknowledge:", consume("message-1") == nil)
	store.Fail(ctx, elsewhere, hookonce.Failure{Err: errors.New("out of memory")})
	fmt.Println("acknowledge:", consume("message-1") == nil)
	fmt.Println("acknowledge:", consume("message-1") == nil) // a copy
	pending, _ := store.Effects(ctx, hookonce.StatePending, 0, 10)
	fmt.Println(len(pending), pending[0].Ref)
	// Output:
	// acknowledge: false
	// acknowledge: true
	// acknowledge: true
	// 1 queue/message-1
}

// Work without a transaction: the keys of its calls are made of the reference.
func ExampleContextWithRef() {
	ctx := hookonce.ContextWithRef(context.Background(), hookonce.Ref{Source: "nightly", Key: "2026-02-03"})
	ref, ok := hookonce.RefFrom(ctx)
	fmt.Println(ref, ok)
	// Output: nightly/2026-02-03 true
}

func ExampleEventFrom() {
	log := func(ctx context.Context) {
		if ev := hookonce.EventFrom(ctx); ev != nil {
			fmt.Println("in the course of", ev.Type, ev.Key)
		}
	}
	log(context.Background()) // not in a handler
	work(memstore.New(), "evt_1", func(ctx context.Context, _ *memstore.Tx) error {
		log(ctx)
		return nil
	})
	// Output: in the course of order.paid evt_1
}

func ExampleRefFrom() {
	work(memstore.New(), "evt_1", func(ctx context.Context, _ *memstore.Tx) error {
		ref, ok := hookonce.RefFrom(ctx)
		fmt.Println(ref.Source, ref.Key, ok)
		return nil
	})
	// Output: shop evt_1 true
}

// A mail that is sent if the transaction commits, and only then. Package relay sends it.
func ExampleEnqueue() {
	store := memstore.New()
	pay := func(ctx context.Context, tx *memstore.Tx) error {
		err := hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.receipt", Payload: []byte(`{"to":"jo@example.com"}`)})
		if err != nil {
			return err
		}
		return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.survey", Due: time.Now().AddDate(0, 0, 7)})
	}
	work(store, "evt_1", pay)
	work(store, "evt_1", pay) // a copy: it does not run
	pending, err := store.Effects(context.Background(), hookonce.StatePending, 0, 10)
	for _, e := range pending {
		fmt.Println(e.Name, e.IdempotencyKey())
	}
	fmt.Println(err)
	// Output:
	// mail.receipt c695729f158dd02c6bbe3d83aa165662
	// mail.survey 8abb658e427b130f89823fae20fd4f1e
	// <nil>
}

// The state of an order arrives out of order.
func ExampleNewer() {
	store := memstore.New()
	apply := func(version int64) func(context.Context, *memstore.Tx) error {
		return func(ctx context.Context, tx *memstore.Tx) error {
			newer, err := hookonce.Newer(ctx, tx, "order/17", version)
			if err != nil || !newer {
				return err
			}
			fmt.Println("version", version, "is applied")
			return nil
		}
	}
	work(store, "evt_1", apply(1))
	work(store, "evt_3", apply(3))
	work(store, "evt_2", apply(2)) // late
	// Output:
	// version 1 is applied
	// version 3 is applied
}

// Two events say that an order is paid. It is shipped once.
func ExampleTransition() {
	store := memstore.New()
	ship := func(ctx context.Context, tx *memstore.Tx) error {
		state, moved, err := hookonce.Transition(ctx, tx, "order/17", "", "shipped")
		fmt.Println(state, moved)
		return err
	}
	work(store, "evt_1", ship)
	work(store, "evt_2", ship)
	// Output:
	// shipped true
	// shipped false
}

// One fee for each payout, whichever event asks for it.
func ExampleOnce() {
	store := memstore.New()
	fee := func(ctx context.Context, tx *memstore.Tx) error {
		mine, err := hookonce.Once(ctx, tx, "payout.fee", "po_1")
		fmt.Println(mine)
		return err
	}
	work(store, "evt_1", fee)
	work(store, "evt_2", fee)
	// Output:
	// true
	// false
}

// The same call has the same key whenever the event's handler runs again, and no other event has it.
func ExampleTransport() {
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Idempotency-Key"))
	}))
	defer bank.Close()
	client := &http.Client{Transport: hookonce.Transport(bank.Client().Transport)}

	charge := func(ctx context.Context, _ *memstore.Tx) error {
		ctx = hookonce.WithStep(ctx, "charge")
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, strings.NewReader("amount=100"))
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		answer.Body.Close()
		return errors.New("the answer was lost")
	}
	store := memstore.New()
	work(store, "evt_1", charge)
	work(store, "evt_1", charge)
	work(store, "evt_2", charge)
	// Output:
	// 2063e51351b7b621d2d150dc3a2b0a95
	// memstore: shop/evt_1: attempt 1: the answer was lost
	// 2063e51351b7b621d2d150dc3a2b0a95
	// memstore: shop/evt_1: attempt 2: the answer was lost
	// 04a2639f506728e61801293b4604cad5
	// memstore: shop/evt_2: attempt 1: the answer was lost
}

// Two calls to one address whose order is chance: their steps are named.
func ExampleWithStep() {
	ctx := context.Background()
	for _, account := range []string{"seller", "platform"} {
		ctx := hookonce.WithStep(ctx, "transfer to "+account)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example/transfers", nil)
		fmt.Println(r.Method, err) // to be sent with a client that has Transport
	}
	// Output:
	// POST <nil>
	// POST <nil>
}

// The key to send with a call that Transport does not make.
func ExampleEffectKey() {
	ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
	fmt.Println(hookonce.EffectKey(ref, "mail"))
	fmt.Println(hookonce.EffectKey(ref, "charge"))
	// Output:
	// 48154d8a3403f464a35dfd430c07eb1f
	// 5690f58a60b507984e5b46288539acef
}

// Copies that follow each other closely do not reach the database.
func ExampleCached() {
	ctx := context.Background()
	store := hookonce.Cached(memstore.New(), hookonce.NewMemoryCache(10_000))
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}}
	for range 2 {
		c, err := store.Within(ctx, req, func(*memstore.Tx, hookonce.Claim) error { return nil })
		fmt.Println(c.Verdict, err)
	}
	// Output:
	// accepted <nil>
	// duplicate <nil>
}

func ExampleNewMemoryCache() {
	ctx, cache := context.Background(), hookonce.NewMemoryCache(1)
	first, second := hookonce.Ref{Source: "billing", Key: "evt_1"}, hookonce.Ref{Source: "billing", Key: "evt_2"}
	cache.Remember(ctx, first, nil)
	cache.Remember(ctx, second, nil) // in place of the first
	_, knowsFirst, _ := cache.Done(ctx, first)
	_, knowsSecond, _ := cache.Done(ctx, second)
	fmt.Println(knowsFirst, knowsSecond)
	// Output: false true
}

// What every store decides in its claiming statement.
func ExampleClaimable() {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	fmt.Println(hookonce.Claimable(hookonce.StateFailed, time.Time{}, now))
	fmt.Println(hookonce.Claimable(hookonce.StateProcessing, now.Add(time.Minute), now))
	fmt.Println(hookonce.Claimable(hookonce.StateProcessing, now, now))
	// Output:
	// true
	// false
	// true
}

func ExampleNormalKey() {
	fmt.Println(hookonce.NormalKey("evt_1"))
	fmt.Println(hookonce.NormalKey(strings.Repeat("long", 100)))
	// Output:
	// evt_1
	// sha256:0184fa9ce314e3d79dfecc814264a454a4e5df48a84d86152079dba576c5f16a
}

func ExampleIsPermanent() {
	err := fmt.Errorf("order 7: %w", hookonce.Permanent(errors.New("it was deleted")))
	fmt.Println(hookonce.IsPermanent(err), hookonce.IsPermanent(errors.New("busy")))
	// Output: true false
}

func ExampleRetryDelay() {
	delay, ok := hookonce.RetryDelay(hookonce.RetryAfter(time.Minute, errors.New("closed")))
	fmt.Println(delay, ok)
	// Output: 1m0s true
}

// The rules that guards apply to names, for stores of one's own.
func ExampleValidateResource() {
	fmt.Println(hookonce.ValidateResource("order/17"))
	fmt.Println(errors.Is(hookonce.ValidateResource(""), hookonce.ErrInvalidRef))
	// Output:
	// <nil>
	// true
}

func ExampleValidateTransition() {
	fmt.Println(hookonce.ValidateTransition("order/17", "paid", "shipped"))
	fmt.Println(hookonce.ValidateTransition("order/17", "paid", "paid"))
	// Output:
	// <nil>
	// hookonce: invalid source or key: a move from "paid" to itself
}
