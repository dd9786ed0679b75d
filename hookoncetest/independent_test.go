package hookoncetest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

// till is an endpoint with a book of its own.
type till map[string]int

func (b till) count(key string) int { return b[key] }

func (b till) endpoint(store *memstore.Store, source string) http.Handler {
	return hookonce.Webhook(store, source, stripe, func(_ context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		tx.OnCommit(func() { b[ev.Key]++ })
		return nil
	}, quiet)
}

func TestIndependent(t *testing.T) {
	live, test, store := till{}, till{}, memstore.New()
	hookoncetest.Independent(t, live.endpoint(store, "stripe-live"), test.endpoint(store, "stripe-test"), stripe, live.count, test.count)
	if len(live) != 2 || len(test) != 2 {
		t.Errorf("the endpoints had %d and %d events, want 2 and 2", len(live), len(test))
	}
}

// Two endpoints with one source swallow each other's events, whichever is first.
func TestIndependentCatchesASharedSource(t *testing.T) {
	live, test, store := till{}, till{}, memstore.New()
	got := watch(t, func(tb testing.TB) {
		hookoncetest.Independent(tb, live.endpoint(store, "stripe"), test.endpoint(store, "stripe"), stripe, live.count, test.count)
	})
	for _, want := range []string{
		"was acknowledged and never happened at the second endpoint, after the other had it (does each have a source of its own?): answered 200",
		"was acknowledged and never happened at the first endpoint, after the other had it (does each have a source of its own?): answered 200",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the test does not say %q, but:\n%s", want, got)
		}
	}
}

// One count for both endpoints shows it as well, and so does one handler given twice.
func TestIndependentWithOneCount(t *testing.T) {
	both, store := till{}, memstore.New()
	hookoncetest.Independent(t, both.endpoint(store, "stripe-live"), both.endpoint(store, "stripe-test"), stripe, both.count, both.count)
	one := both.endpoint(store, "stripe-one")
	for name, ends := range map[string][2]http.Handler{
		"a shared source":   {both.endpoint(store, "stripe"), both.endpoint(store, "stripe")},
		"one handler twice": {one, one},
	} {
		got := watch(t, func(tb testing.TB) {
			hookoncetest.Independent(tb, ends[0], ends[1], stripe, both.count, both.count)
		})
		for _, want := range []string{"never happened at the second endpoint, after the other had it", "never happened at the first endpoint, after the other had it"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the test does not say %q, but:\n%s", name, want, got)
			}
		}
	}
}

// An endpoint that does not know the secret is found, too.
func TestIndependentCatchesARefusal(t *testing.T) {
	live, store := till{}, memstore.New()
	got := watch(t, func(tb testing.TB) {
		hookoncetest.Independent(tb, live.endpoint(store, "stripe"), http.NotFoundHandler(), stripe, live.count, till{}.count, hookoncetest.Attempts(2))
	})
	if want := "never happened, and was never acknowledged at the second endpoint, after the other had it (does each have a source of its own?): answered 404 (2 times)"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}

// What is final for the sender is said there as well, and not sent again.
func TestIndependentWhereRefusalsAreFinal(t *testing.T) {
	live, store, datadog := till{}, memstore.New(), provider.Datadog("fake-secret")
	handler := hookonce.Webhook(store, "live", datadog, func(_ context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		tx.OnCommit(func() { live[ev.Key]++ })
		return nil
	}, quiet)
	got := watch(t, func(tb testing.TB) {
		hookoncetest.Independent(tb, handler, http.NotFoundHandler(), datadog, live.count, till{}.count)
	}) + "\n"
	if want := "was answered 404, which is final for datadog: the event is lost at the second endpoint, after the other had it (does each have a source of its own?): answered 404\n"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}
