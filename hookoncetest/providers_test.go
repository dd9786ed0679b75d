package hookoncetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// ledger counts effects in memory.
type ledger struct {
	mu sync.Mutex
	n  map[string]int
}

func (l *ledger) add(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[string]int{}
	}
	l.n[key]++
	return l.n[key]
}

func (l *ledger) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[key]
}

// TestStormOfManyProviders: however a sender signs, and wherever its key is.
func TestStormOfManyProviders(t *testing.T) {
	const address = "https://shop.example/in?a=1"
	for _, p := range []*spec.Provider{
		provider.Adyen("00112233445566778899aabbccddeeff"), // signed item by item, a key of several parts
		provider.GitHub("fake-secret"),                     // the key is in a header
		provider.Shopify("fake-secret"),
		provider.Slack("fake-secret"),           // the time is signed
		provider.Square(address, "fake-secret"), // the URL is signed
		provider.Standard("whsec_ZmFrZXNlY3JldA=="),
		provider.Twilio(address, "fake-secret"), // a form
		provider.GitLab("fake-secret"),          // a token
	} {
		t.Run(p.Name(), func(t *testing.T) {
			var effects ledger
			handler := hookonce.Webhook(memstore.New(), p.Name(), p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				tx.OnCommit(func() { effects.add(ev.Key) })
				return hookoncetest.Fail(ctx)
			}, quiet, hookonce.WithPublicURL(address))
			hookoncetest.Storm(t, handler, p, hookoncetest.Copies(3), hookoncetest.URL(address)).Once(t, effects.count)
		})
	}
}

// TestStormSignsEachDeliveryAnew: as senders do, also where all deliveries of an event have one body, and whether a handler takes
// no time or a second.
func TestStormSignsEachDeliveryAnew(t *testing.T) {
	p := provider.Standard("whsec_ZmFrZXNlY3JldA==")
	for name, took := range map[string]time.Duration{"the clock stands": 0, "it goes on": time.Second} {
		t.Run(name, func(t *testing.T) {
			clock := hookoncetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
			var effects, signatures ledger
			handler := hookonce.Webhook(memstore.New(), p.Name(), p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				tx.OnCommit(func() { effects.add(ev.Key) })
				return hookoncetest.Fail(ctx)
			}, quiet, hookonce.WithClock(clock.Now))
			hookoncetest.Storm(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n := signatures.add(r.Header.Get("Webhook-Signature")); n > 1 {
					t.Errorf("%d deliveries have one signature", n)
				}
				clock.Advance(took)
				handler.ServeHTTP(w, r)
			}), p, hookoncetest.Copies(2), hookoncetest.Now(clock.Now)).Once(t, effects.count)
		})
	}
}

// TestStormKeepsToTheTolerance: no delivery is signed longer ago than a handler allows, however little that is.
func TestStormKeepsToTheTolerance(t *testing.T) {
	p, err := provider.Build("stripe", spec.Settings{Secrets: spec.Secrets("whsec_fake"), Tolerance: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clock := hookoncetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	var effects ledger
	handler := hookonce.Webhook(memstore.New(), "stripe", p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		tx.OnCommit(func() { effects.add(ev.Key) })
		return hookoncetest.Fail(ctx)
	}, quiet, hookonce.WithClock(clock.Now), hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
		if o.Status == "rejected" {
			t.Errorf("a delivery is %s: %v", o.Status, o.Err)
		}
	}))
	hookoncetest.Storm(t, handler, p, hookoncetest.Copies(10), hookoncetest.Now(clock.Now)).Once(t, effects.count)
}

// TestStormOfHTTPMessageSignatures: a test signs with a private key of its own, and the handler has the public one alone,
// whether a sender signs so or the gateway does.
func TestStormOfHTTPMessageSignatures(t *testing.T) {
	const address = "https://shop.example/in?a=1"
	ec := httpsigtest.Of(httpsig.ECDSAP256SHA256)
	for name, c := range map[string]struct {
		sender hookoncetest.Signer
		own    hookonce.Provider
	}{
		"a sender": {
			provider.HTTPSignature(provider.HTTPSignatureConfig{Secrets: []string{ec.Private}, URL: address, AsSender: true}),
			provider.HTTPSignature(provider.HTTPSignatureConfig{Secrets: []string{ec.Public}, URL: address}),
		},
		"the gateway": {
			provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{ec.Private}, AsSender: true}),
			provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{ec.Public}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var effects ledger
			handler := hookonce.Webhook(memstore.New(), "in", c.own, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				tx.OnCommit(func() { effects.add(ev.Key) })
				return hookoncetest.Fail(ctx)
			}, quiet, hookonce.WithPublicURL(address))
			hookoncetest.Storm(t, handler, c.sender, hookoncetest.Copies(3), hookoncetest.URL(address)).Once(t, effects.count)
		})
	}
}

// TestClientStormOnALease: the weaker door, as long as nobody dies.
func TestClientStormOnALease(t *testing.T) {
	var effects ledger
	handler := hookonce.IdempotentLease(memstore.New(), "orders", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hookoncetest.Fail(r.Context()) != nil {
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		effects.add(r.URL.Query().Get("order"))
		w.WriteHeader(http.StatusCreated)
	}), hookonce.WithoutScope(), quiet)
	storm := hookoncetest.ClientStorm(t, handler, func(key string) *http.Request {
		r := order(key)
		r.URL.RawQuery = "order=" + key
		return r
	})
	storm.Once(t, effects.count)
}

// TestStormOfNumberedEvents: a sender whose ids are numbers sends numbers, and each event is another one.
func TestStormOfNumberedEvents(t *testing.T) {
	p := provider.Paystack("fake-secret")
	var effects ledger
	handler := hookonce.Webhook(memstore.New(), p.Name(), p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		var charge struct{ Data struct{ ID int64 } }
		if err := json.Unmarshal(ev.Body, &charge); err != nil || charge.Data.ID < 1e14 {
			t.Errorf("the body has no number as its id: %v, %s", err, ev.Body)
		}
		tx.OnCommit(func() { effects.add(ev.Key) })
		return hookoncetest.Fail(ctx)
	}, quiet)
	hookoncetest.Storm(t, handler, p, hookoncetest.Copies(3)).Once(t, effects.count)
}
