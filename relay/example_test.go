package relay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// payment stores an effect in the transaction that records a payment.
func payment(ctx context.Context, store *memstore.Store, event string, e hookonce.Effect) error {
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: event}}
	_, err := store.Within(ctx, req, func(tx *memstore.Tx, c hookonce.Claim) error {
		return hookonce.Enqueue(hookonce.ContextWith(ctx, store, c, nil), tx, e)
	})
	return err
}

// The mail service fails after it took the mail. It comes again under the same key, so that the service can
// tell.
func ExampleNew() {
	ctx, cancel := context.WithCancel(context.Background())
	store := memstore.New() // in production: pgstore.New(pool) or sqlstore.New(db, sqlstore.SQLite)
	if err := payment(ctx, store, "evt_1", hookonce.Effect{Name: "mail.receipt", Payload: []byte("a@b.example")}); err != nil {
		panic(err)
	}
	worker := relay.New(store, map[string]relay.Handler{
		"mail.receipt": func(ctx context.Context, e hookonce.QueuedEffect) error {
			fmt.Printf("mail to %s, key %s\n", e.Payload, e.IdempotencyKey())
			if e.Tries == 1 {
				return errors.New("the connection broke")
			}
			cancel()
			return nil
		},
	}, relay.WithSchedule(func(tries int) (time.Duration, bool) { return 0, tries < 5 }), relay.WithPoll(time.Millisecond), relay.WithLogger(slog.New(slog.DiscardHandler)))
	if err := worker.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// mail to a@b.example, key e1c454bb1394b47289c398a40ceea5b4
	// mail to a@b.example, key e1c454bb1394b47289c398a40ceea5b4
}

func ExamplePOST() {
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.Header.Get("Hookonce-Effect"), "for", r.Header.Get("Hookonce-Key"), r.Header.Get("Idempotency-Key"))
	}))
	defer crm.Close()
	handle := relay.POST(crm.Client(), crm.URL)
	err := handle(context.Background(), hookonce.QueuedEffect{
		Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "crm.update", Payload: []byte(`{}`)},
	})
	fmt.Println(err)
	// Output:
	// POST crm.update for evt_1 d5c39acb4fa6816ff24eebbd15f36e99
	// <nil>
}

func ExampleNewPOST() {
	_, err := relay.NewPOST(nil, "crm.example/hooks", relay.PostSecrets("whsec_ZmFrZQ=="))
	fmt.Println(err)
	// Output: relay: POST: the address must begin with http:// or https:// and name a host
}

func ExampleExponential() {
	schedule := relay.Exponential(time.Second, time.Minute, 2, 3)
	for tries := 1; tries <= 3; tries++ {
		delay, again := schedule(tries)
		fmt.Println(again, delay <= 2*time.Second)
	}
	// Output:
	// true true
	// true true
	// false true
}

// Whoever commits wakes the relay, which then does not wait for its next look.
func ExampleRelay_Wake() {
	ctx, cancel := context.WithCancel(context.Background())
	store := memstore.New()
	worker := relay.New(store, map[string]relay.Handler{
		"mail.receipt": func(context.Context, hookonce.QueuedEffect) error {
			fmt.Println("sent")
			cancel()
			return nil
		},
	}, relay.WithPoll(time.Hour))
	go func() {
		if err := payment(ctx, store, "evt_1", hookonce.Effect{Name: "mail.receipt"}); err != nil {
			panic(err)
		}
		worker.Wake()
	}()
	if err := worker.Run(ctx); err != nil {
		panic(err)
	}
	// Output: sent
}

func ExampleDefaultSchedule() {
	schedule := relay.DefaultSchedule()
	delay, again := schedule(1)
	fmt.Println(delay <= 5*time.Second, again)
	_, again = schedule(13)
	fmt.Println(again)
	// Output:
	// true true
	// false
}
