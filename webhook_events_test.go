package hookonce_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// graves collects the keys under which failures are said to be, or not to be, on record.
type graves struct{ keys []string }

func (g *graves) observe(_ context.Context, o hookonce.Observation) {
	if o.Err != nil {
		g.keys = append(g.keys, regexp.MustCompile("sha256:unkeyed:[A-Z2-7]+").FindAllString(o.Err.Error(), 1)...)
	}
}

// dead returns the claims that are there under those keys.
func (g *graves) dead(t *testing.T, store *memstore.Store) (dead []hookonce.Claim) {
	t.Helper()
	for _, key := range g.keys {
		if c, err := store.Lookup(t.Context(), hookonce.Ref{Source: "sender", Key: key}); err == nil && c.State == hookonce.StateDead {
			dead = append(dead, c)
		}
	}
	return dead
}

// untraced is a store whose transactions lose the trace of what they fail with, before or after it was written.
type untraced struct {
	*memstore.Store
	persisted bool
}

func (u untraced) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	if req.Key == "" {
		return u.Store.Within(ctx, req, fn)
	}
	if !u.persisted {
		return hookonce.Claim{}, fmt.Errorf("%w (%w: %w)", fn(nil, hookonce.Claim{Ref: req.Ref}), hookonce.ErrTraceLost, errAway)
	}
	c, err := u.Store.Within(ctx, req, fn)
	return c, fmt.Errorf("%w (%w: %w)", err, hookonce.ErrTraceLost, errAway)
}

var errUseless = hookonce.Permanent(errors.New("nobody can read this"))

// The failure for good of an event without a claim is acknowledged on record, in both doors, and only if the
// record is known to be durable.
func TestUnkeyedRecord(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(*memstore.Store) hookonce.TxStore[*memstore.Tx]
		opts []hookonce.WebhookOption
		code int
		want string
		dead int
	}{
		"without the option": {nil, nil, 503, "failed", 0},
		"on record":          {nil, []hookonce.WebhookOption{hookonce.WithUnkeyedRecord()}, 200, "dead", 1},
		"not recorded": {func(s *memstore.Store) hookonce.TxStore[*memstore.Tx] { return untraced{s, false} },
			[]hookonce.WebhookOption{hookonce.WithUnkeyedRecord()}, 503, "failed", 0},
		"recorded, but reported to fail": {func(s *memstore.Store) hookonce.TxStore[*memstore.Tx] { return untraced{s, true} },
			[]hookonce.WebhookOption{hookonce.WithUnkeyedRecord()}, 503, "failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			var wrapped hookonce.TxStore[*memstore.Tx] = store
			if c.wrap != nil {
				wrapped = c.wrap(store)
			}
			runs, g := 0, new(graves)
			h := endpoint(wrapped, func(context.Context, *memstore.Tx, *hookonce.Event) error { runs++; return errUseless }, append(c.opts, hookonce.WithObserver(g.observe))...)
			want(t, post(h, "- 1"), c.code, c.want)
			if dead := g.dead(t, store); len(dead) != c.dead || runs != 1 {
				t.Errorf("on record: %+v; handled %d times", dead, runs)
			}
		})
	}
}

func TestUnkeyedRecordUnderALease(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty
		code  int
		want  string
		dead  int
	}{
		"on record":                      {faulty{}, 200, "dead", 1},
		"not claimed":                    {faulty{claim: away}, 503, "failed", 0},
		"not recorded":                   {faulty{fail: away}, 503, "failed", 0},
		"recorded, but reported to fail": {faulty{fail: func(persist func() error) error { return errors.Join(errAway, persist()) }}, 503, "failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, g := memstore.New(), new(graves)
				c.fault.Store = store
				if c.fault.claim != nil { // the claim of the record, not the first question
					asked := 0
					c.fault.claim = func(persist func() error) error {
						if asked++; asked > 1 {
							return errAway
						}
						return persist()
					}
				}
				want(t, post(leased(c.fault, func(context.Context, *hookonce.Event) error { return errUseless }, hookonce.WithUnkeyedRecord(), hookonce.WithObserver(g.observe)), "- 1"), c.code, c.want)
				if dead := g.dead(t, store); len(dead) != c.dead {
					t.Errorf("on record: %+v", dead)
				}
			})
		})
	}
}

// A handler that gives an event up when its own time is over has that on record all the same.
func TestUnkeyedRecordAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := memstore.New(), new(graves)
		h := endpoint(store, func(ctx context.Context, _ *memstore.Tx, _ *hookonce.Event) error { <-ctx.Done(); return errUseless },
			hookonce.WithUnkeyedRecord(), hookonce.WithObserver(g.observe), hookonce.WithTimeout(5*time.Second))
		want(t, post(h, "- 1"), 200, "dead")
		if dead := g.dead(t, store); len(dead) != 1 {
			t.Errorf("on record: %+v", dead)
		}
	})
}

// Each delivery has a record of its own, with what people look for; other failures, and events with a key, have
// none.
func TestUnkeyedRecordSaysWhat(t *testing.T) {
	store, g := memstore.New(), new(graves)
	opts := []hookonce.WebhookOption{quiet, hookonce.WithUnkeyedRecord(), hookonce.WithObserver(g.observe)}
	fault := errUseless
	h := endpoint(store, func(context.Context, *memstore.Tx, *hookonce.Event) error { return fault }, opts...)
	want(t, post(h, "- 1"), 200, "dead")
	want(t, post(h, "- 1"), 200, "dead")
	for _, c := range g.dead(t, store) {
		if c.Source != "sender" || c.Type != "test" || string(c.Digest) != "1" || c.Token != 1 || !strings.Contains(c.LastError, "nobody can read this") {
			t.Errorf("on record: %+v", c)
		}
	}
	want(t, post(h, "a 1"), 200, "dead") // under its own key
	fault = errAway
	want(t, post(h, "- 1"), 503, "failed")
	fault = nil
	want(t, post(h, "- 1"), 200, "unkeyed")
	if n := len(g.dead(t, store)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	h = hookonce.Webhook(store, "sender", changes{}, func(context.Context, *memstore.Tx, *hookonce.Event) error { return errUseless }, opts...)
	want(t, post(h, "a 1"), 200, "dead")
	if n := len(g.dead(t, store)); n != 3 {
		t.Errorf("%d records, want 3: the event that coalesces has no claim either", n)
	}
}

// No sender can give its events a key that passes for such a record.
func TestUnkeyedRecordCannotBeForged(t *testing.T) {
	if key := hookonce.NormalKey("sha256:unkeyed:ABC"); strings.HasPrefix(key, "sha256:unkeyed:") {
		t.Errorf("NormalKey returns %q", key)
	}
}
