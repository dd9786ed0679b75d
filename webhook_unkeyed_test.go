package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

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
		opts []hookonce.Option
		code int
		want string
		dead int
	}{
		"without the option": {nil, nil, 503, "failed", 0},
		"on record":          {nil, []hookonce.Option{hookonce.WithUnkeyedRecord()}, 200, "dead", 1},
		"not recorded": {func(s *memstore.Store) hookonce.TxStore[*memstore.Tx] { return untraced{s, false} },
			[]hookonce.Option{hookonce.WithUnkeyedRecord()}, 503, "failed", 0},
		"recorded, but reported to fail": {func(s *memstore.Store) hookonce.TxStore[*memstore.Tx] { return untraced{s, true} },
			[]hookonce.Option{hookonce.WithUnkeyedRecord()}, 503, "failed", 1},
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

// Each delivery has a record of its own, with what people look for; other failures, and events with a key, have
// none.
func TestUnkeyedRecordSaysWhat(t *testing.T) {
	store, g := memstore.New(), new(graves)
	opts := []hookonce.Option{quiet, hookonce.WithUnkeyedRecord(), hookonce.WithObserver(g.observe)}
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
