package hookoncetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// once counts an effect that is not there yet.
func (l *ledger) once(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[string]int{}
	}
	l.n[key] = 1
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
		provider.Datadog("fake-secret"),         // a status of the 400s is final
		provider.PagerDuty("fake-secret"),
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

// TestStormWhereRefusalsAreFinal: where a sender drops an event that is answered with a status of the 400s, a handler that answers so
// when its work fails loses the event. Such an answer to a request whose context the storm had ended does not count.
func TestStormWhereRefusalsAreFinal(t *testing.T) {
	datadog := provider.Datadog("fake-secret")
	for _, tt := range []struct {
		p       *spec.Provider
		failing int // what is answered when the work fails
		ended   int // what is answered when the context has ended; 0: nobody looks
		want    []string
	}{
		{datadog, http.StatusBadRequest, 0, []string{
			"2 of ", "was answered 400, which is final for datadog: the event is lost: the work fails twice: answered 400\n",
			"was answered 400, which is final for datadog: the event is lost: the work fails for 3 copies at one moment: answered 400 (3 times)\n",
		}},
		{datadog, http.StatusServiceUnavailable, 0, nil},
		{datadog, http.StatusTooManyRequests, 0, nil},
		{datadog, http.StatusRequestTimeout, 0, nil},
		{datadog, http.StatusServiceUnavailable, http.StatusBadRequest, nil},
		{provider.PagerDuty("fake-secret"), http.StatusNotFound, 0, []string{"was answered 404, which is final for pagerduty: the event is lost: the work fails twice"}},
		{stripe, http.StatusBadRequest, 0, nil},
	} {
		t.Run(fmt.Sprint(tt.p.Name(), " ", tt.failing, " ", tt.ended), func(t *testing.T) {
			var effects ledger
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				d, err := tt.p.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: now()})
				switch {
				case err != nil:
					w.WriteHeader(http.StatusServiceUnavailable)
				case hookoncetest.Fail(r.Context()) != nil:
					w.WriteHeader(tt.failing)
				case tt.ended != 0 && r.Context().Err() != nil:
					w.WriteHeader(tt.ended)
				default:
					effects.once(d.Events[0].Key)
				}
			})
			got := watch(t, func(tb testing.TB) {
				hookoncetest.Storm(tb, handler, tt.p, hookoncetest.Copies(3)).Once(tb, effects.count)
			}) + "\n"
			if tt.want == nil && got != "\n" {
				t.Errorf("the test says %q", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("the test does not say %q, but:\n%s", want, got)
				}
			}
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
