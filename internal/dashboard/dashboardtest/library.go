package dashboardtest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	library "github.com/hookonce/hookonce/dashboard"

	"github.com/hookonce/hookonce"
)

// Store is a store of the library in a world. It notes what it is asked to change.
type Store struct {
	hookonce.Store       // nil: nobody claims anything
	hookonce.EffectQueue // nil: no relay runs
	World                World

	mu    sync.Mutex
	calls []string
}

// Calls are what it was asked to change.
func (s *Store) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Store) note(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	return nil
}

func (s *Store) text(harmless string) string {
	if s.World == Hostile {
		return Attack
	}
	return harmless
}

func (s *Store) claims() []hookonce.Claim {
	c := func(source, key string, state hookonce.State, changed time.Duration) hookonce.Claim {
		return hookonce.Claim{Ref: hookonce.Ref{Source: source, Key: s.text(key)}, State: state, Token: 2, Type: s.text("invoice.paid"), FirstSeen: ago(changed + time.Hour), UpdatedAt: ago(changed)}
	}
	failed, dead, stuck, held := c("billing", "evt_failed", hookonce.StateFailed, 3*time.Minute), c("billing", "evt_dead", hookonce.StateDead, 2*time.Hour),
		c("shop", "evt_stuck", hookonce.StateProcessing, time.Hour), c("shop", "evt_held", hookonce.StateProcessing, time.Second)
	failed.LastError, dead.LastError = s.text("dial tcp 10.0.0.7:5432: connection refused"), s.text("no such customer")
	stuck.Lease, stuck.Pinned, held.Lease = ago(59*time.Minute), 1, Now.Add(time.Minute)
	return []hookonce.Claim{held, failed, stuck, dead}
}

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(_ context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	keys := []string{"evt_held", "evt_failed", "evt_stuck", "evt_dead"} // without an attack, in the order of the claims
	for i, c := range s.claims() {
		if c.Source == ref.Source && (c.Key == ref.Key || keys[i] == ref.Key) {
			return c, nil
		}
	}
	return hookonce.Claim{}, hookonce.ErrNotFound
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(_ context.Context, c hookonce.Claim, f hookonce.Failure) error {
	return s.note(fmt.Sprintf("fail %s %d pinned %t: %s", c, c.Token, f.Pin, f.Err))
}

// Sources implements [hookonce.Inspector].
func (s *Store) Sources(context.Context) ([]string, error) {
	return []string{"billing", "once:" + s.text("welcome"), "shop"}, nil
}

// ListClaims implements [hookonce.Inspector].
func (s *Store) ListClaims(_ context.Context, q hookonce.ClaimQuery) ([]hookonce.Claim, error) {
	if s.World == Calm {
		return nil, nil
	}
	return slices.DeleteFunc(s.claims(), func(c hookonce.Claim) bool {
		return len(q.States) > 0 && !slices.Contains(q.States, c.State) || q.Lapsed && c.Lease.After(Now) || q.Source != "" && q.Source != c.Source
	}), nil
}

// FindClaims implements [hookonce.Inspector].
func (s *Store) FindClaims(_ context.Context, source string, keys []string) ([]hookonce.Claim, error) {
	return slices.DeleteFunc(s.claims(), func(c hookonce.Claim) bool { return c.Source != source || !slices.Contains(keys, c.Key) }), nil
}

// CountClaims implements [hookonce.Inspector].
func (s *Store) CountClaims(context.Context, int) ([]hookonce.ClaimCount, error) {
	if s.World == Calm {
		return nil, nil
	}
	return []hookonce.ClaimCount{
		{Source: "billing", State: hookonce.StateDead, N: 1, Oldest: ago(2 * time.Hour)}, {Source: "billing", State: hookonce.StateFailed, N: 1204, Oldest: ago(5 * time.Hour)},
		{Source: "shop", State: hookonce.StateProcessing, N: 2, Lapsed: 1, Oldest: ago(time.Hour)},
	}, nil
}

func (s *Store) effects() []hookonce.QueuedEffect {
	e := func(id int64, name string, state hookonce.State) hookonce.QueuedEffect {
		return hookonce.QueuedEffect{ID: id, State: state, Token: 3, Tries: 3, EnqueuedAt: ago(2 * time.Hour),
			Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: s.text("evt_dead")}, Name: s.text(name), Step: s.text("receipt")}}
	}
	dead, open := e(7, "mail.receipt", hookonce.StateDead), e(8, "crm.update", hookonce.StatePending)
	dead.LastError, open.Due = s.text("550 mailbox unavailable"), ago(20*time.Minute)
	return []hookonce.QueuedEffect{dead, open}
}

// ListEffects implements [hookonce.Inspector].
func (s *Store) ListEffects(_ context.Context, q hookonce.EffectQuery) ([]hookonce.QueuedEffect, error) {
	if s.World == Calm && q.ID == 0 {
		return nil, nil
	}
	return slices.DeleteFunc(s.effects(), func(e hookonce.QueuedEffect) bool {
		return q.ID != 0 && e.ID != q.ID || q.ID == 0 && q.Ref.Key == "" && q.Dead != (e.State == hookonce.StateDead)
	}), nil
}

// CountEffects implements [hookonce.Inspector].
func (s *Store) CountEffects(context.Context, int) ([]hookonce.EffectCount, error) {
	if s.World == Calm {
		return nil, nil
	}
	return []hookonce.EffectCount{{Name: s.text("crm.update"), Open: 311, Late: 300, Due: ago(20 * time.Minute)}, {Name: s.text("mail.receipt"), Dead: 1}}, nil
}

// Effects implements [hookonce.EffectAdmin].
func (s *Store) Effects(context.Context, hookonce.State, int64, int) ([]hookonce.QueuedEffect, error) {
	return nil, nil
}

// Purge implements [hookonce.Purger].
func (s *Store) Purge(context.Context, hookonce.PurgeRequest) (int, error) { return 0, nil }

// RedriveEffect implements [hookonce.EffectAdmin].
func (s *Store) RedriveEffect(_ context.Context, id int64) error {
	return s.note(fmt.Sprintf("redrive %d", id))
}

// ListGuards implements [hookonce.Inspector].
func (s *Store) ListGuards(_ context.Context, kind hookonce.GuardKind, _ string, _ int) ([]hookonce.Guard, error) {
	if kind == hookonce.GuardStates {
		return []hookonce.Guard{{Name: s.text("order 7"), State: s.text("paid"), UpdatedAt: ago(time.Hour)}}, nil
	}
	return []hookonce.Guard{
		{Name: s.text("pi_1"), Rank: hookonce.Version(12_000), UpdatedAt: ago(time.Hour)}, {Name: s.text("pi_2"), Rank: hookonce.Timestamp(ago(2 * time.Hour)), UpdatedAt: ago(time.Hour)},
	}, nil
}

// AddTallies implements [hookonce.Tallier].
func (s *Store) AddTallies(context.Context, string, int64, []hookonce.Tally) error { return nil }

// ForgetTallies implements [hookonce.Tallier].
func (s *Store) ForgetTallies(context.Context) (bool, error) { return false, nil }

// Tallies implements [hookonce.Tallier].
func (s *Store) Tallies(_ context.Context, q hookonce.TallyQuery) ([]hookonce.Tally, error) {
	if s.World == Calm {
		return nil, nil
	}
	source, times := s.text("billing"), int64(1)
	if q.Hours {
		times = 20
	}
	return []hookonce.Tally{
		{Source: source, Status: "accepted", N: 900 * times}, {Source: source, Status: "conflict", N: times}, {Source: source, Status: "duplicate", N: 95 * times},
		{Source: source, Status: "failed", N: 4 * times}, {Source: source, Status: "rejected", N: 3 * times}, {Source: "shop", Status: "unkeyed", N: 7 * times},
	}, nil
}

// Reconciliations implements [hookonce.Inspector].
func (s *Store) Reconciliations(context.Context, int) ([]hookonce.Reconciliation, error) {
	if s.World == Calm {
		return nil, nil
	}
	lost := int64(0)
	return []hookonce.Reconciliation{
		{At: ago(10 * time.Hour), Question: hookonce.ReconcileQuestion{Table: s.text("payments"), EventColumn: "event_id", Where: s.text("not refund")}, Rows: 5003, Events: 5000, Doubled: 3, Surplus: 3,
			Found: []hookonce.Reconciled{{Source: "billing", Event: s.text("evt_2"), Rows: 2, At: "2026-11-21"}}},
		{At: ago(11 * time.Hour), Question: hookonce.ReconcileQuestion{Table: "orders", EventColumn: "event_id", Lost: "claims", Source: "shop"}, Rows: 90, Events: 90, Lost: &lost, Found: []hookonce.Reconciled{}},
		{At: ago(12 * time.Hour), Question: hookonce.ReconcileQuestion{Table: "mails", EventColumn: "event_id", Lost: "claims", Source: "shop"}, Fault: s.text("hookonce.claims is empty"), Found: []hookonce.Reconciled{}},
	}, nil
}

// Library returns the dashboard of a store of the library. Everybody is let in, and whether they may act is the caller's to say.
func Library(s *Store, act bool) http.Handler {
	return library.Handler(s, func(*http.Request) (string, bool) { return "oncall", true },
		library.WithActions(func(*http.Request) bool { return act }), library.WithClock(func() time.Time { return Now }), library.WithVersion("1.4.0"))
}
