package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// liar is a store that is wrong in one way.
type liar struct {
	hookonce.Store
	claim    func(hookonce.Claim) hookonce.Claim
	complete func(s hookonce.Store, c hookonce.Claim) error
	lookup   func(hookonce.Claim) hookonce.Claim
	purged   int
}

func (l liar) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	c, err := l.Store.Claim(ctx, req)
	if err == nil && l.claim != nil {
		c = l.claim(c)
	}
	return c, err
}

func (l liar) Complete(ctx context.Context, c hookonce.Claim) error {
	if l.complete != nil {
		return l.complete(l.Store, c)
	}
	return l.Store.Complete(ctx, c)
}

func (l liar) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	c, err := l.Store.Lookup(ctx, ref)
	if err == nil && l.lookup != nil {
		c = l.lookup(c)
	}
	return c, err
}

func (l liar) Purge(ctx context.Context, req hookonce.PurgeRequest) (int, error) {
	n, err := l.Store.Purge(ctx, req)
	if n > 0 {
		n += l.purged
	}
	return n, err
}

// Every way of breaking the rules is found in the histories.
func TestHistoryFindsWhatIsWrong(t *testing.T) {
	// again ignores the fence: it completes whatever token is current.
	again := func(s hookonce.Store, c hookonce.Claim) error {
		stored, err := s.Lookup(t.Context(), c.Ref)
		return errors.Join(err, s.Complete(t.Context(), stored))
	}
	var first sync.Map
	liars := map[string]liar{
		"two win": {claim: func(c hookonce.Claim) hookonce.Claim {
			if c.Verdict == hookonce.Busy {
				c.Verdict = hookonce.Acquired
			}
			return c
		}},
		"work in progress is called done": {claim: func(c hookonce.Claim) hookonce.Claim {
			if c.Verdict == hookonce.Busy {
				c.Verdict = hookonce.Duplicate
			}
			return c
		}},
		"a takeover keeps the token": {claim: func(c hookonce.Claim) hookonce.Claim {
			if c.Verdict == hookonce.Acquired {
				c.Token = 1
			}
			return c
		}},
		"conflicts are not seen": {claim: func(c hookonce.Claim) hookonce.Claim {
			c.Conflict = false
			return c
		}},
		"a stale worker completes":   {complete: again},
		"a completion is not stored": {complete: func(hookonce.Store, hookonce.Claim) error { return nil }},
		"what was read once is read for ever": {lookup: func(c hookonce.Claim) hookonce.Claim {
			earlier, _ := first.LoadOrStore(c.Ref, c)
			return earlier.(hookonce.Claim)
		}},
		"purges count too much": {purged: 1},
	}
	for name, l := range liars {
		t.Run(name, func(t *testing.T) {
			if found(t, l) == "" {
				t.Error("nothing was found")
			}
		})
	}
	if violation := found(t, liar{}); violation != "" {
		t.Errorf("found something in a store that is right:\n%s", violation)
	}
}

// found returns what the checker finds wrong with the liar over a store in memory.
func found(t *testing.T, l liar) (violation string) {
	cfg := Config{Open: func(testing.TB) func(Options) hookonce.Store {
		base := memstore.New()
		return func(o Options) hookonce.Store {
			store := l
			store.Store = base.With(memstore.WithClock(o.Clock))
			return store
		}
	}}
	bench := newLab(t, cfg.History())
	for i := 0; i < 20 && violation == ""; i++ {
		violation = bench.record(t, 1, i).check()
	}
	return violation
}
