package hookoncetest_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// seen is what a handler was told of its events, by key.
func seen(t *testing.T, p *spec.Provider, opts ...hookoncetest.Option) (events []*hookonce.Event) {
	handler := hookonce.Webhook(memstore.New(), "s", p, func(_ context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		kept := *ev
		tx.OnCommit(func() {
			if !slices.ContainsFunc(events, func(e *hookonce.Event) bool { return e.Key == kept.Key }) {
				events = append(events, &kept)
			}
		})
		return nil
	}, quiet)
	hookoncetest.Storm(t, handler, p, append(opts, hookoncetest.Copies(2))...)
	return events
}

// TestStormIsAboutObjects: several of them, with several events of one second each, whoever sends. Two storms
// are about different ones.
func TestStormIsAboutObjects(t *testing.T) {
	for _, p := range []*spec.Provider{stripe, provider.GitHub("fake-secret"), provider.Shopify("fake-secret"), provider.Paddle("fake-secret")} {
		t.Run(p.Name(), func(t *testing.T) {
			about := map[string]int{}
			events := seen(t, p)
			for _, ev := range events {
				about[ev.Scope]++
				if !ev.Time.Equal(events[0].Time) || ev.Rank != events[0].Rank {
					t.Errorf("%s is of another time than the first: %v, %v", ev.Key, ev.Time, ev.Rank)
				}
			}
			if len(events) < 10 || len(about) != (len(events)+2)/3 || about[""] > 0 {
				t.Errorf("%d events are about %v", len(events), about)
			}
			for _, ev := range seen(t, p) {
				if about[ev.Scope] > 0 {
					t.Errorf("the second storm is about %s, too", ev.Scope)
				}
			}
		})
	}
}

// Where the event itself is the object, no two are about one. The page on testing names these providers.
func TestStormOfEventsThatAreTheirOwnObjects(t *testing.T) {
	for _, p := range []*spec.Provider{provider.Adyen("00112233445566778899aabbccddeeff"), provider.AdyenPlatform("00112233445566778899aabbccddeeff"), provider.Calendly("fake-secret")} {
		about, events := map[string]bool{}, seen(t, p)
		for _, ev := range events {
			about[ev.Scope] = true
		}
		if len(about) != len(events) {
			t.Errorf("%s: %d events are about %d objects", p.Name(), len(events), len(about))
		}
	}
}

func TestPerObjectAndObject(t *testing.T) {
	about := func(opts ...hookoncetest.Option) (events, objects int) {
		scopes := map[string]bool{}
		for _, ev := range seen(t, stripe, opts...) {
			events++
			scopes[ev.Scope] = true
		}
		return events, len(scopes)
	}
	if events, objects := about(hookoncetest.PerObject(1)); events != objects {
		t.Errorf("%d events are about %d objects, each should have its own", events, objects)
	}
	if _, objects := about(hookoncetest.Object("sub_1")); objects != 1 {
		t.Errorf("the events are about %d objects, and not about the one", objects)
	}
	r := hookoncetest.Sign(t, stripe, "evt_1", hookoncetest.Object("sub_1"))
	if ev := open(t, stripe, r, now()); ev.Resource != "sub_1" {
		t.Errorf("the event is about %q", ev.Resource)
	}
}

// TestBodySaysWhatItIsAbout: a body of the user's own can be about the same objects.
func TestBodySaysWhatItIsAbout(t *testing.T) {
	body := hookoncetest.Body(func(of spec.Sample) []byte {
		return []byte(`{"id":"` + of.ID + `","type":"` + of.Type + `","data":{"object":{"id":"` + of.Object + `"}}}`)
	})
	ev := open(t, stripe, hookoncetest.Sign(t, stripe, "evt_1", body, hookoncetest.Object("sub_1"), hookoncetest.Type("customer.subscription.updated")), now())
	if ev.Key != "evt_1" || ev.Resource != "sub_1" || ev.Type != "customer.subscription.updated" {
		t.Errorf("%s %s about %s", ev.Key, ev.Type, ev.Resource)
	}
	if ev := open(t, stripe, hookoncetest.Sign(t, stripe, "evt_1", body), now()); ev.Type != "payment_intent.succeeded" || !strings.HasPrefix(ev.Resource, "pi_") {
		t.Errorf("%s about %s", ev.Type, ev.Resource)
	}
	about := map[string]int{}
	for _, ev := range seen(t, stripe, body) {
		about[ev.Resource]++
	}
	if len(about) < 4 || about[""] > 0 {
		t.Errorf("the events are about %v", about)
	}
}

// counting is a sender that numbers the states of its objects.
func counting(t *testing.T) *spec.Provider {
	t.Helper()
	s, err := specyaml.Parse([]byte(`
name: acme
verify:
  - signature: {in: header:X-Acme-Signature}
    sign: [body]
event:
  key: [[json:$.id]]
  resource: [json:$.order.number]
order: {by: json:$.order.version}
example:
  body: |
    {"id": "{{id}}", "order": {"number": "{{object}}", "version": {{version}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("fake-secret")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStormPassesNewer: whoever guards each object with Newer misses no event, by times nor by versions.
func TestStormPassesNewer(t *testing.T) {
	for _, p := range []*spec.Provider{stripe, provider.Shopify("fake-secret"), counting(t)} {
		t.Run(p.Name(), func(t *testing.T) {
			s := openShop(t)
			handler := hookonce.Webhook(shopStore(t, s), p.Name(), p, func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
				newer, err := hookonce.Newer(ctx, tx, ev)
				if err != nil || !newer {
					return err
				}
				return book(ctx, tx, ev.Key)
			}, quiet)
			storm := hookoncetest.Storm(t, handler, p)
			storm.Once(t, s.count(t))
		})
	}
}

// TestStormCatchesEqualIsOld: whoever takes a state of the same second for an old one acknowledges what never
// happens.
func TestStormCatchesEqualIsOld(t *testing.T) {
	var orders ledger
	newest := map[string]time.Time{}
	handler := hookonce.Webhook(memstore.New(), "stripe", stripe, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		tx.OnCommit(func() {
			if ev.Time.After(newest[ev.Scope]) {
				newest[ev.Scope] = ev.Time
				orders.add(ev.Key)
			}
		})
		return hookoncetest.Fail(ctx)
	}, quiet)
	got := watch(t, func(tb testing.TB) {
		hookoncetest.Storm(tb, handler, stripe, hookoncetest.Copies(2)).Once(tb, orders.count)
	})
	if want := "was acknowledged and never happened: 2 copies at one moment: answered 200"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}
