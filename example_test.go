package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
		defer answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("the carrier answered %d", answer.StatusCode)
		}
		return nil
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

func ExampleIdempotent() {
	store := memstore.New() // in production: pgstore.New(pool) or sqlstore.New(db, sqlstore.SQLite)

	mux := http.NewServeMux()
	mux.Handle("POST /charges", hookonce.Idempotent(store, "charges",
		func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			tx.OnCommit(func() { fmt.Println("charged") }) // commits with the claim and the answer
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, `{"id":"ch_1"}`)
			return err
		},
		hookonce.WithScope(func(r *http.Request) (string, error) {
			account, _, _ := r.BasicAuth() // authenticated before
			return account, nil
		})))

	// The customer clicks twice; then somebody uses the key for something else.
	for _, body := range []string{`{"amount":10}`, `{"amount":10}`, `{"amount":99}`} {
		r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(body))
		r.SetBasicAuth("acct_1", "fake")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d replayed=%q\n", w.Code, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// charged
	// 201 replayed=""
	// 201 replayed="true"
	// 422 replayed=""
}

// A card that is declined: the charge is undone, and every copy is told so without asking the card again.
func ExampleIdempotent_rollback() {
	store := memstore.New()

	h := hookonce.Idempotent(store, "charges",
		func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			tx.OnCommit(func() { fmt.Println("charged") }) // never: it is rolled back
			fmt.Println("the card is asked")
			w.WriteHeader(http.StatusPaymentRequired)
			io.WriteString(w, `{"error":"card declined"}`)
			return fmt.Errorf("the card was declined: %w", hookonce.ErrRollback)
		},
		hookonce.WithoutScope())

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(`{"amount":10}`))
		r.Header.Set("Idempotency-Key", "order-7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed=%q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// the card is asked
	// 402 {"error":"card declined"} replayed=""
	// 402 {"error":"card declined"} replayed="true"
}

func ExampleIdempotentLease() {
	store := memstore.New() // in production a store that other processes share

	print := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("printed") // outside any transaction
		io.WriteString(w, "label 1")
	})
	h := hookonce.IdempotentLease(store, "receipts", print, hookonce.WithoutScope())
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/labels", strings.NewReader("parcel 7"))
		r.Header.Set("Idempotency-Key", "parcel-7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed=%q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// printed
	// 200 label 1 replayed=""
	// 200 label 1 replayed="true"
}

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

// The states of a subscription arrive out of order. Two are of one second, and an event is about no object.
func ExampleNewer() {
	store := memstore.New()
	apply := func(ev hookonce.Event) {
		work(store, ev.Key, func(ctx context.Context, tx *memstore.Tx) error {
			newer, err := hookonce.Newer(ctx, tx, &ev)
			fmt.Println(ev.Key, newer)
			return err
		})
	}
	second := func(n int64) hookonce.Rank { return hookonce.Timestamp(time.Unix(n, 0)) }
	apply(hookonce.Event{Source: "stripe", Key: "evt_1", Scope: "sub_1", Rank: second(1)})
	apply(hookonce.Event{Source: "stripe", Key: "evt_3", Scope: "sub_1", Rank: second(3)})
	apply(hookonce.Event{Source: "stripe", Key: "evt_2", Scope: "sub_1", Rank: second(2)}) // late
	apply(hookonce.Event{Source: "stripe", Key: "evt_4", Scope: "sub_1", Rank: second(3)})
	apply(hookonce.Event{Source: "stripe", Key: "evt_5", Rank: second(1)})
	// Output:
	// evt_1 true
	// evt_3 true
	// evt_2 false
	// evt_4 true
	// evt_5 true
}

// The state of an order arrives out of order. It has a version.
func ExampleNewerRank() {
	store := memstore.New()
	for i, version := range []int64{1, 3, 2, 3} {
		work(store, fmt.Sprint("evt_", i), func(ctx context.Context, tx *memstore.Tx) error {
			newer, err := hookonce.NewerRank(ctx, tx, "order/17", hookonce.Version(version))
			fmt.Println(version, newer)
			return err
		})
	}
	// Output:
	// 1 true
	// 3 true
	// 2 false
	// 3 false
}

// Equal versions are one state. Equal times may be two.
func ExampleRank() {
	at := time.Unix(1770091506, 0)
	fmt.Println(hookonce.Version(2).Supersedes(hookonce.Version(2)))
	fmt.Println(hookonce.Timestamp(at).Supersedes(hookonce.Timestamp(at)))
	fmt.Println(hookonce.Timestamp(at).Supersedes(hookonce.Version(2))) // the provider has changed its mind
	// Output:
	// false
	// true
	// true
}

// Two events say that an order is shipped, the second when it was delivered.
func ExampleTransition() {
	store := memstore.New()
	move := func(key, from, to string) {
		work(store, key, func(ctx context.Context, tx *memstore.Tx) error {
			state, move, err := hookonce.Transition(ctx, tx, "order/17", from, to)
			fmt.Println(move, state)
			return err
		})
	}
	move("evt_1", "", "shipped")
	move("evt_2", "", "shipped")
	move("evt_3", "shipped", "delivered")
	move("evt_4", "", "shipped")
	// Output:
	// moved shipped
	// already shipped
	// moved delivered
	// impossible delivered
}

func ExampleMoveOf() {
	fmt.Println(hookonce.MoveOf(true, "paid", "paid"), hookonce.MoveOf(false, "paid", "paid"), hookonce.MoveOf(false, "open", "paid"))
	// Output: moved already impossible
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
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusServiceUnavailable) // it may have charged all the same
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
		defer answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("the bank answered %d", answer.StatusCode)
		}
		return nil
	}
	store := memstore.New()
	work(store, "evt_1", charge)
	work(store, "evt_1", charge)
	work(store, "evt_2", charge)
	// Output:
	// 2063e51351b7b621d2d150dc3a2b0a95
	// memstore: shop/evt_1: attempt 1: the bank answered 503
	// 2063e51351b7b621d2d150dc3a2b0a95
	// memstore: shop/evt_1: attempt 2: the bank answered 503
	// 04a2639f506728e61801293b4604cad5
	// memstore: shop/evt_2: attempt 1: the bank answered 503
}

// Two calls to one address: their steps are named.
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

// A handler that calls another system without Transport says so: when it fails after that, only the same request
// may be sent again under its key.
func ExamplePinRequest() {
	shop := hookonce.Idempotent(memstore.New(), "orders", func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
		hookonce.PinRequest(r.Context())
		fmt.Println("charged") // by an SDK with a connection of its own
		return errors.New("the answer was lost")
	}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	for _, amount := range []string{"100", "200"} {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(amount))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
		w := httptest.NewRecorder()
		shop.ServeHTTP(w, r)
		fmt.Println(amount, w.Code)
	}
	// Output:
	// charged
	// 100 503
	// 200 422
}

// The same for requests that do not arrive over HTTP.
func ExampleContextWithPin() {
	store, ref := memstore.New(), hookonce.Ref{Source: "orders", Key: "cmd_1"}
	for _, amount := range []string{"100", "200"} {
		ctx := hookonce.ContextWithPin(context.Background(), ref)
		req := hookonce.ClaimRequest{Ref: ref, Digest: []byte(amount)}
		_, err := store.Within(ctx, req, func(*memstore.Tx, hookonce.Claim) error {
			hookonce.PinRequest(ctx)
			return errors.New("the answer was lost")
		})
		fmt.Println(err)
	}
	// Output:
	// memstore: orders/cmd_1: attempt 1: the answer was lost
	// memstore: claim orders/cmd_1: hookonce: the key is bound to the content of an earlier attempt
}

// Somebody who may not ask leaves nothing in the table.
func ExampleForget() {
	store, ref := memstore.New(), hookonce.Ref{Source: "orders", Key: "cmd_1"}
	_, err := store.Within(context.Background(), hookonce.ClaimRequest{Ref: ref}, func(*memstore.Tx, hookonce.Claim) error {
		return hookonce.Forget(errors.New("who is this?"))
	})
	fmt.Println(err)
	_, err = store.Lookup(context.Background(), ref)
	fmt.Println(errors.Is(err, hookonce.ErrNotFound))
	// Output:
	// memstore: orders/cmd_1: attempt 1: who is this?
	// true
}

// What a store records of a handler's error.
func ExampleFailureOf() {
	ref := hookonce.Ref{Source: "orders", Key: "cmd_1"}
	ctx := hookonce.ContextWithPin(context.Background(), ref)
	hookonce.PinRequest(ctx)
	f := hookonce.FailureOf(ctx, ref, hookonce.Permanent(errors.New("the card was stolen")))
	fmt.Println(f.State(), f.Pin, f.Text())
	// Output: dead true the card was stolen
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
func ExampleClaim_VerdictFor() {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	charge100, charge200 := hookonce.ClaimRequest{Digest: []byte("100")}, hookonce.ClaimRequest{Digest: []byte("200")}
	held := hookonce.Claim{State: hookonce.StateProcessing, Lease: now.Add(time.Minute), Digest: []byte("100"), Pinned: 1}
	fmt.Println(held.VerdictFor(charge100, now))
	expired := now.Add(time.Minute)
	fmt.Println(held.VerdictFor(charge100, expired))
	fmt.Println(held.VerdictFor(charge200, expired)) // the first attempt may have charged 100
	// Output:
	// busy
	// accepted
	// pinned
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
	fmt.Println(hookonce.ValidateResource("order/17", hookonce.Version(3)))
	fmt.Println(errors.Is(hookonce.ValidateResource("", hookonce.Version(3)), hookonce.ErrInvalidRef))
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
