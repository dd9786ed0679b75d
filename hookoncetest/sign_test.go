package hookoncetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// open finds out what a receiver finds in a delivery.
func open(t *testing.T, p *spec.Provider, r *http.Request, at time.Time) *hookonce.Event {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(&hookonce.Request{Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: body, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	return &d.Events[0]
}

func TestSign(t *testing.T) {
	clock := hookoncetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	r := hookoncetest.Sign(t, stripe, "evt_1", hookoncetest.Now(clock.Now), hookoncetest.Type("charge.refunded"), hookoncetest.URL("https://shop.example/in"))
	ev := open(t, stripe, r, clock.Now())
	if ev.Key != "evt_1" || ev.Type != "charge.refunded" || r.URL.Path != "/in" || r.Method != http.MethodPost {
		t.Errorf("%s %s: %s %s", r.Method, r.URL, ev.Key, ev.Type)
	}
	body := []byte(`{"id":"evt_2","type":"mine"}`)
	r = hookoncetest.Sign(t, stripe, "evt_2", hookoncetest.Now(clock.Now), hookoncetest.Body(func(spec.Sample) []byte { return body }))
	if ev := open(t, stripe, r, clock.Now()); ev.Key != "evt_2" || !bytes.Equal(ev.Body, body) {
		t.Errorf("%s: %s", ev.Key, ev.Body)
	}
}

// TestCopiesHaveOneContent: in a test and in those within it, whatever the time; each test has events of its own, and
// none is of the future.
func TestCopiesHaveOneContent(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	clock := hookoncetest.NewClock(start)
	now := hookoncetest.Now(clock.Now)
	want := func(t testing.TB, at time.Time) {
		t.Helper()
		var ev struct{ Created int64 }
		if err := json.NewDecoder(hookoncetest.Sign(t, stripe, "evt_1", now).Body).Decode(&ev); err != nil {
			t.Fatal(err)
		}
		if got := time.Unix(ev.Created, 0); got.Unix() != at.Unix() {
			t.Errorf("at %v the event says that it happened at %v, not at %v", clock.Now(), got, at)
		}
	}
	t.Run("within", func(t *testing.T) {
		want(t, start)
		handler := hookonce.Webhook(memstore.New(), "stripe", stripe, func(context.Context, *memstore.Tx, *hookonce.Event) error {
			return nil
		}, hookonce.WithClock(clock.Now), quiet)
		for _, status := range []string{"accepted", "duplicate"} {
			clock.Advance(1100 * time.Millisecond)
			if got := hookoncetest.Deliver(t, handler, stripe, "evt_1", now).Header.Get("Hookonce-Status"); got != status {
				t.Errorf("the delivery is %s, not %s", got, status)
			}
		}
		t.Run("deep", func(t *testing.T) { t.Run("er", func(t *testing.T) { want(t, start) }) })
	})
	later := clock.Advance(time.Hour)
	t.Run("another", func(t *testing.T) { want(renamed{t}, later) })
	later = clock.Advance(time.Hour)
	t.Run("the same again", func(t *testing.T) { want(renamed{t}, later) })
	clock.Advance(time.Hour)
	want(t, clock.Now())
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		clock.Advance(at.Sub(clock.Now()))
		want(t, at)
		clock.Advance(time.Hour)
		want(t, at)
	})
}

// renamed is a test under one name, as tests have that run several times.
type renamed struct{ testing.TB }

func (renamed) Name() string { return "TestCopiesHaveOneContent/renamed" }

// TestSignIsRefused: what cannot be sent is said, and not sent.
func TestSignIsRefused(t *testing.T) {
	private, err := provider.Build("paypal", spec.Settings{Secrets: spec.Secrets("WH-FAKE")})
	if err != nil {
		t.Fatal(err)
	}
	coalescing := provider.Dropbox("fake-secret")
	tests := []struct {
		name string
		f    func(testing.TB)
		want string
	}{
		{"a private key", func(tb testing.TB) { hookoncetest.Sign(tb, private, "WH-1") }, "cannot sign"},
		{"no event", func(tb testing.TB) {
			hookoncetest.Sign(tb, stripe, "x", hookoncetest.Body(func(spec.Sample) []byte { return []byte("{") }))
		}, "no event in it"},
		{"a storm in whose name nothing can be signed", func(tb testing.TB) {
			hookoncetest.Storm(tb, http.NotFoundHandler(), private)
		}, "cannot sign"},
		{"a storm of one event", func(tb testing.TB) {
			hookoncetest.Storm(tb, ok, stripe, hookoncetest.Body(func(spec.Sample) []byte { return []byte(`{"id":"evt_1"}`) }))
		}, "two events have the same key"},
		{"a storm of events without a key", func(tb testing.TB) {
			hookoncetest.Storm(tb, ok, stripe, hookoncetest.Body(func(spec.Sample) []byte { return []byte(`{}`) }))
		}, "have no key"},
		{"a storm of mere hints", func(tb testing.TB) { hookoncetest.Storm(tb, ok, coalescing) }, "each copy of one takes effect"},
		{"another secret", func(tb testing.TB) {
			hookoncetest.Storm(tb, endpoint(nil), provider.Stripe("whsec_another"))
		}, "answered 401"},
		{"no handler", func(tb testing.TB) { hookoncetest.Storm(tb, nil, stripe) }, "needs a handler"},
		{"one copy", func(tb testing.TB) { hookoncetest.Storm(tb, ok, stripe, hookoncetest.Copies(1)) }, "Copies(1)"},
		{"no event about an object", func(tb testing.TB) { hookoncetest.Storm(tb, ok, stripe, hookoncetest.PerObject(0)) }, "PerObject(0)"},
		{"no attempt", func(tb testing.TB) { hookoncetest.Storm(tb, ok, stripe, hookoncetest.Attempts(0)) }, "Attempts(0)"},
		{"no clock", func(tb testing.TB) { hookoncetest.Sign(tb, stripe, "evt_1", hookoncetest.Now(nil)) }, "Now(nil)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := watch(t, tt.f); !strings.Contains(got, tt.want) {
				t.Errorf("it fails with %q, and not with %q", got, tt.want)
			}
		})
	}
}

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func TestDeliver(t *testing.T) {
	handler := endpoint(func(_ context.Context, event string) error {
		if event == "evt_1" {
			return nil
		}
		return io.EOF
	})
	for id, want := range map[string]int{"evt_1": http.StatusOK, "evt_2": http.StatusInternalServerError} {
		if got := hookoncetest.Deliver(t, handler, stripe, id); got.StatusCode != want {
			t.Errorf("%s is answered %d", id, got.StatusCode)
		}
	}
}

func TestClock(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	c := hookoncetest.NewClock(start)
	if got := c.Advance(time.Hour); !got.Equal(start.Add(time.Hour)) || !c.Now().Equal(got) {
		t.Errorf("after an hour it is %v", got)
	}
	if c.Advance(-time.Hour); !c.Now().Equal(start) {
		t.Errorf("after an hour back it is %v", c.Now())
	}
}
