package hookoncetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

// t stands for the argument of a test.
var t testing.TB = printer{}

// printer is a test that prints the first line of how it fails.
type printer struct{ testing.TB }

func (printer) Helper() {}

func (printer) Name() string { return "Example" }

func (printer) Cleanup(func()) {} // an example ends with the process

func (printer) Errorf(format string, a ...any) {
	line, _, _ := strings.Cut(fmt.Sprintf(format, a...), "\n")
	fmt.Println("FAIL:", line)
}

func (printer) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// The test that every webhook handler should have, in a test function of your own: t is its argument.
func ExampleStorm() {
	stripe, orders := provider.Stripe("whsec_test"), &ledger{}
	handler := hookonce.Webhook(memstore.New(), "stripe", stripe, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		tx.OnCommit(func() { orders.add(ev.Key) })
		return hookoncetest.Fail(ctx) // in a test only: here the work may fail
	}, quiet)

	storm := hookoncetest.Storm(t, handler, stripe)
	storm.Once(t, orders.count)
	// Output:
}

// Two endpoints of one provider, for the live account and for tests, that were given one source.
func ExampleIndependent() {
	stripe, store := provider.Stripe("whsec_test"), memstore.New()
	endpoint := func(source string, orders *ledger) http.Handler {
		return hookonce.Webhook(store, source, stripe, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			tx.OnCommit(func() { orders.add(ev.Key) })
			return nil
		}, quiet)
	}
	live, test := &ledger{}, &ledger{}
	t := &lines{TB: t}
	hookoncetest.Independent(t, endpoint("stripe", live), endpoint("stripe", test), stripe, live.count, test.count)
	fmt.Println(t.n, "events were swallowed")
	hookoncetest.Independent(t, endpoint("stripe-live", live), endpoint("stripe-test", test), stripe, live.count, test.count)
	fmt.Println(t.n, "events were swallowed")
	// Output:
	// 2 events were swallowed
	// 2 events were swallowed
}

// lines is a test that counts how often it fails.
type lines struct {
	testing.TB
	n int
}

func (l *lines) Errorf(string, ...any) { l.n++ }

// What the same test says about a handler that remembers an event before its work is done.
func ExampleReport_Once() {
	stripe, orders, seen := provider.Stripe("whsec_test"), &ledger{}, &ledger{}
	naive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d, err := stripe.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
		switch {
		case err != nil:
			http.Error(w, "", http.StatusUnauthorized)
		case seen.add(d.Events[0].Key) > 1: // a copy
		case hookoncetest.Fail(r.Context()) != nil:
			http.Error(w, "", http.StatusInternalServerError)
		default:
			orders.add(d.Events[0].Key)
		}
	})

	storm := hookoncetest.Storm(t, naive, stripe)
	storm.Once(t, orders.count)
	// evt_ea1c1ea00017 was acknowledged and never happened: the work fails twice: answered 500, 200

	// Output: FAIL: 2 of 77 events went wrong, such as:
}

// A sender whose signature nobody can make: in the test the handler takes another proof, or none.
func ExampleStormOf() {
	orders := &ledger{}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		orders.add(r.Header.Get("Event-Id")) // each copy
	})
	storm := hookoncetest.StormOf(t, handler, func(id string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(`{"paid":true}`))
		r.Header.Set("Event-Id", id)
		return r
	})
	storm.Once(t, orders.count)
	// Output: FAIL: 41 of 75 events went wrong, such as:
}

func ExampleClientStorm() {
	orders := &ledger{}
	handler := hookonce.Idempotent(memstore.New(), "orders", func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		body, err := io.ReadAll(r.Body)
		tx.OnCommit(func() { orders.add(string(body)) })
		w.WriteHeader(http.StatusCreated)
		return err
	}, hookonce.WithoutScope(), quiet)

	storm := hookoncetest.ClientStorm(t, handler, func(key string) *http.Request {
		return httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(key))
	})
	storm.Once(t, orders.count)
	// Output:
}

func ExampleSign() {
	r := hookoncetest.Sign(t, provider.GitHub("fake-secret"), "72d3162e", hookoncetest.Type("issues.opened"), hookoncetest.URL("https://ci.example/hooks"))
	fmt.Println(r.Method, r.URL, r.Header.Get("X-GitHub-Event"), r.Header.Get("X-Hub-Signature-256")[:7])
	// Output: POST https://ci.example/hooks issues sha256=
}

func ExampleDeliver() {
	stripe := provider.Stripe("whsec_test")
	handler := hookonce.Webhook(memstore.New(), "stripe", stripe, func(context.Context, *memstore.Tx, *hookonce.Event) error {
		return hookonce.RetryAfter(time.Minute, errors.New("the ledger is closed"))
	}, quiet)
	answer := hookoncetest.Deliver(t, handler, stripe, "evt_1")
	fmt.Println(answer.StatusCode, answer.Header.Get("Retry-After"))
	// Output: 503 60
}

// The fake of what a handler calls fails when the storm has it so.
func ExampleFail() {
	charge := func(ctx context.Context) error {
		if err := hookoncetest.Fail(ctx); err != nil {
			return err
		}
		return nil // charged
	}
	fmt.Println(charge(context.Background()))
	// Output: <nil>
}

// The first commit succeeds, and nobody is told. The copy reads the truth.
func ExampleCrash() {
	store := hookoncetest.Crash(memstore.New(), hookoncetest.AfterCommit, 1)
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}}
	work := func(*memstore.Tx, hookonce.Claim) error { return nil }

	_, err := store.Within(context.Background(), req, work)
	fmt.Println(errors.Is(err, hookonce.ErrUnknownOutcome))
	c, err := store.Within(context.Background(), req, work)
	fmt.Println(c.Verdict, err)
	// Output:
	// true
	// duplicate <nil>
}

// A lease runs out when the test has it so.
func ExampleNewClock() {
	clock := hookoncetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	store := memstore.New(memstore.WithClock(clock.Now))
	job := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "nightly", Key: "report"}, Lease: time.Minute}
	for range 2 {
		c, _ := store.Claim(context.Background(), job)
		fmt.Println(c.Verdict, c.Token)
		clock.Advance(time.Hour)
	}
	// Output:
	// accepted 1
	// accepted 2
}

func ExampleReport_String() {
	stripe := provider.Stripe("whsec_test")
	storm := hookoncetest.Storm(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), stripe)
	fmt.Println(strings.Contains(storm.String(), "events"))
	// Output: true
}
