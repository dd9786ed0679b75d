package hookonce_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

func ExampleWebhook() {
	stripe := provider.Stripe("whsec_fake")
	store := memstore.New() // in production: pgstore.New(pool) or sqlstore.New(db, sqlstore.SQLite)

	handler := hookonce.Webhook(store, "stripe", stripe,
		func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			tx.OnCommit(func() { fmt.Println("effect of", ev.Type, ev.Key) })
			return nil // the effect commits with the claim
		})

	// The provider sends the same event twice.
	header, body := stripe.Spec().Sample(spec.Sample{ID: "evt_1", Type: "charge.succeeded", Time: time.Now()})
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(string(body)))
		signed := hookonce.Request{Method: r.Method, Header: header, Body: body, Now: time.Now()}
		if err := stripe.Sign(&signed); err != nil {
			panic(err)
		}
		r.Header = signed.Header
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Hookonce-Status"))
	}
	// Output:
	// effect of charge.succeeded evt_1
	// 200 accepted
	// 200 duplicate
}

// A carrier prints labels. It takes an Idempotency-Key, and there is no database at hand.
func ExampleWebhookLease() {
	carrier := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("label printed, with a key:", r.Header.Get("Idempotency-Key") != "")
	}))
	defer carrier.Close()
	client := &http.Client{Transport: hookonce.Transport(http.DefaultTransport)}
	stripe := provider.Stripe("whsec_fake")
	store := memstore.New() // in production: redisstore.New(client)

	handler := hookonce.WebhookLease(store, "stripe", stripe, func(ctx context.Context, ev *hookonce.Event) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, carrier.URL+"/labels", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r) // the same key if the handler runs again
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}, hookonce.WithLease(30*time.Second))

	// The provider sends the same event twice.
	header, body := stripe.Spec().Sample(spec.Sample{ID: "evt_1", Type: "charge.succeeded", Time: time.Now()})
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(string(body)))
		signed := hookonce.Request{Method: r.Method, Header: header, Body: body, Now: time.Now()}
		if err := stripe.Sign(&signed); err != nil {
			panic(err)
		}
		r.Header = signed.Header
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Hookonce-Status"))
	}
	// Output:
	// label printed, with a key: true
	// 200 accepted
	// 200 duplicate
}

// A consumer of a queue, whose messages come at least once.
func ExampleUnderLease() {
	store := memstore.New() // in production: redisstore.New(client)
	consume := func(message string) (acknowledge bool) {
		job := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "labels", Key: message}, Lease: 30 * time.Second}
		_, err := hookonce.UnderLease(context.Background(), store, job, func(ctx context.Context, c hookonce.Claim) error {
			fmt.Println("printing", c.Key, "under the key", hookonce.EffectKey(c.Ref, "print"))
			return nil // takes as long as it takes: the lease is extended
		})
		return err == nil
	}
	fmt.Println(consume("parcel-7"), consume("parcel-7"))
	// Output:
	// printing parcel-7 under the key 152cf194138e3a6bead9ea3ad4813981
	// true true
}

// Work that claims and records by itself, and wants its lease kept in between.
func ExampleKeepLease() {
	ctx, store, lease := context.Background(), memstore.New(), 30*time.Second
	asked := time.Now()
	c, err := store.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "nightly", Key: "report"}, Lease: lease})
	if err != nil || c.Verdict != hookonce.Acquired {
		return
	}
	held, release := hookonce.KeepLease(ctx, store, c, lease, asked)
	fmt.Println("at work:", held.Err() == nil) // the work goes on while held does
	release()
	fmt.Println(store.Complete(ctx, c))
	// Output:
	// at work: true
	// <nil>
}

func ExamplePermanent() {
	err := hookonce.Permanent(fmt.Errorf("order %d was deleted", 7))
	fmt.Println(hookonce.IsPermanent(err), err)
	// Output: true order 7 was deleted
}

func ExampleRetryAfter() {
	err := hookonce.RetryAfter(30*time.Second, fmt.Errorf("the ledger is locked"))
	delay, ok := hookonce.RetryDelay(err)
	fmt.Println(delay, ok)
	// Output: 30s true
}

func ExampleStore() {
	ctx := context.Background()
	store := memstore.New()
	job := hookonce.ClaimRequest{
		Ref:   hookonce.Ref{Source: "nightly", Key: "report-2026-02-03"},
		Lease: time.Minute, // another worker may take over after it, with a higher token
	}
	c, err := store.Claim(ctx, job)
	if err != nil || c.Verdict != hookonce.Acquired {
		return // done already, or another worker is at it
	}
	fmt.Println("attempt", c.Token)
	// ... the work, with c.Token sent along where the other system can fence ...
	if err := store.Complete(ctx, c); err != nil {
		fmt.Println(err) // hookonce.ErrStale: somebody took over, and owns the outcome
	}
	again, _ := store.Claim(ctx, job)
	fmt.Println(again.Verdict)
	// Output:
	// attempt 1
	// duplicate
}

func ExampleJoinKey() {
	fmt.Println(hookonce.JoinKey("shop", "orders/paid", "42"))
	// Output: 4:shop11:orders/paid2:42
}
