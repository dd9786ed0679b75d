package hookonce_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

// behind is an endpoint behind the gateway, and what its handler did.
type behind struct {
	http.Handler
	p    *provider.HookonceProvider
	done []string // source/key
}

func newBehind(store *memstore.Store, handle func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) (bool, error)) *behind {
	b := &behind{p: provider.Hookonce("whsec_ZmFrZSBzZWNyZXQ=")}
	b.Handler = hookonce.Webhook(store, "endpoint", b.p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		do, err := handle(ctx, tx, ev)
		if do {
			tx.OnCommit(func() { b.done = append(b.done, ev.Ref().String()) })
		}
		return err
	}, quiet)
	return b
}

func always(context.Context, *memstore.Tx, *hookonce.Event) (bool, error) { return true, nil }

// deliver delivers as the gateway does, with these headers and their values, and returns status and verdict.
func (b *behind) deliver(t *testing.T, headers ...string) (status int, verdict string) {
	t.Helper()
	req := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte("{}"), Now: time.Now()}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.Header.Set("Idempotency-Key", req.Header.Get("Hookonce-Source")+":"+req.Header.Get("Hookonce-Key"))
	if err := b.p.Sign(req); err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader(req.Body))
	r.Header = req.Header
	b.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Hookonce-Status")
}

// sourced is a provider that sets what it should not.
type sourced struct{ hookonce.Provider }

func (p sourced) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	d, err := p.Provider.Open(req)
	for i := range d.Events {
		d.Events[i].Source = "of its own"
	}
	return d, err
}

// Only events that come from the gateway bring their source along: what any other provider says is not the scope of keys.
func TestSourceIsTheEndpoints(t *testing.T) {
	var claimed string
	h := hookonce.Webhook(memstore.New(), "endpoint", sourced{provider.Stripe("whsec_fake")}, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		claimed = ev.Source
		return nil
	}, quiet)
	w := hookoncetest.Deliver(t, h, provider.Stripe("whsec_fake"), "evt_1")
	if w.StatusCode != http.StatusOK || claimed != "endpoint" {
		t.Errorf("answered %d, claimed under %q", w.StatusCode, claimed)
	}
}

// The events of several sources come to one endpoint, and equal keys of two of them are two events. Another attempt at
// one is a duplicate, and so is one that somebody forces.
func TestGatewaySourcesDoNotMeet(t *testing.T) {
	b := newBehind(memstore.New(), always)
	for _, c := range []struct {
		verdict string
		headers []string
	}{
		{"accepted", []string{"Hookonce-Source", "live", "Hookonce-Key", "evt_1", "Hookonce-Attempt", "1"}},
		{"accepted", []string{"Hookonce-Source", "test", "Hookonce-Key", "evt_1", "Hookonce-Attempt", "1"}},
		{"duplicate", []string{"Hookonce-Source", "live", "Hookonce-Key", "evt_1", "Hookonce-Attempt", "2"}},
		{"duplicate", []string{"Hookonce-Source", "test", "Hookonce-Key", "evt_1", "Hookonce-Attempt", "3", "Hookonce-Forced", "true"}},
	} {
		if status, verdict := b.deliver(t, c.headers...); status != http.StatusOK || verdict != c.verdict {
			t.Errorf("%v: answered %d, %s; want %s", c.headers, status, verdict, c.verdict)
		}
	}
	if want := []string{"live/evt_1", "test/evt_1"}; !slices.Equal(b.done, want) {
		t.Errorf("done are %q, want %q", b.done, want)
	}
}

// A source that no endpoint may have is refused, and claims nothing: those of Once would meet it.
func TestGatewaySourceOfOnce(t *testing.T) {
	b := newBehind(memstore.New(), always)
	if status, _ := b.deliver(t, "Hookonce-Source", "once:payout", "Hookonce-Key", "po_1"); status != http.StatusServiceUnavailable || len(b.done) > 0 {
		t.Errorf("answered %d, done are %q", status, b.done)
	}
}

// versioned is a provider for tests whose every body is the number of a state of one object.
type versioned struct{ sender }

func (versioned) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	n, err := strconv.ParseInt(string(req.Body), 10, 64)
	ev := hookonce.Event{Key: "direct_" + string(req.Body), Scope: "sub_1", Rank: hookonce.Version(n), Body: req.Body, Header: req.Header}
	return &hookonce.Verified{Events: []hookonce.Event{ev}}, err
}

// A guard behind the gateway and one in front of it decide in the same way, and know what the other applied.
func TestGuardsAgreeWithTheGateway(t *testing.T) {
	store, applied := memstore.New(), []string{}
	b := newBehind(store, hookonce.Newer[*memstore.Tx])
	front := hookonce.Webhook(store, "billing", versioned{}, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		newer, err := hookonce.Newer(ctx, tx, ev)
		if newer {
			applied = append(applied, ev.Key)
		}
		return err
	}, quiet)
	direct := func(version string) {
		front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(version)))
	}
	delivered := func(version string) {
		b.deliver(t, "Hookonce-Source", "billing", "Hookonce-Key", "delivered_"+version, "Hookonce-Scope", "sub_1", "Hookonce-Rank", "version:"+version)
	}
	direct("5")
	delivered("4")
	delivered("6")
	direct("6")
	direct("7")
	delivered("7")
	if !slices.Equal(applied, []string{"direct_5", "direct_7"}) || !slices.Equal(b.done, []string{"billing/delivered_6"}) {
		t.Errorf("in front of it %q were applied, behind it %q", applied, b.done)
	}
}

// The storm that tests an endpoint in front of the gateway tests one behind it.
func TestStormBehindTheGateway(t *testing.T) {
	var mu sync.Mutex
	orders := map[string]int{}
	p := provider.Hookonce("whsec_ZmFrZSBzZWNyZXQ=")
	handler := hookonce.Webhook(memstore.New(), "hooks", p, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		newer, err := hookonce.Newer(ctx, tx, ev)
		if err != nil || !newer {
			return err
		}
		tx.OnCommit(func() {
			mu.Lock()
			defer mu.Unlock()
			orders[ev.Key]++
		})
		return hookoncetest.Fail(ctx)
	}, quiet)
	hookoncetest.Storm(t, handler, p, hookoncetest.Copies(5)).Once(t, func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		return orders[key]
	})
}
