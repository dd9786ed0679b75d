package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"pgregory.net/rapid"
)

// Briefly lets the comparison with the model run few random histories until t ends, where another test
// of the same store runs many: what differs between connections shows in the first. It sets a flag of
// the process, so t must not be parallel; its subtests may.
func Briefly(t testing.TB) {
	const checks = "rapid.checks"
	before := flag.Lookup(checks).Value.String()
	ok(t, flag.Set(checks, "5"))
	t.Cleanup(func() { ok(t, flag.Set(checks, before)) })
}

// checkModel does random things to the store and to memstore, and compares every answer.
func checkModel(t *testing.T, cfg Config) {
	f := cfg.fresh(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		m := newMachine(rt, f.Store, f.clock, round)
		rt.Repeat(m.actions())
	})
}

// checkTxModel does the same with transactions among it, and with everything that the store has besides.
func checkTxModel[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	f := cfg.fresh(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		m := newTxMachine(rt, f.TxStore, f.clock, round)
		rt.Repeat(m.actions())
	})
}

// machine does the same to a store and to its model. Every round has sources of its own, so that
// all rounds can share one database.
type machine struct {
	store   hookonce.Store
	model   *memstore.Store
	clock   *Clock
	sources []string
	claims  []hookonce.Claim // that somebody holds, or believes to hold
	touched []hookonce.Ref   // by the last action
}

func newMachine(t *rapid.T, s hookonce.Store, clock *Clock, round int) *machine {
	m := &machine{
		store: s, clock: clock, model: memstore.New(memstore.WithClock(clock.Now)),
		sources: []string{fmt.Sprintf("billing-%d", round), fmt.Sprintf("shop-%d", round)},
	}
	clock.Advance(time.Microsecond) // what was changed last is old, too
	if _, err := s.Purge(context.Background(), before(clock.Now(), math.MaxInt32)); err != nil {
		t.Fatalf("emptying the store: %v", err)
	}
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"claim":    m.claim,
		"complete": m.complete,
		"fail":     m.fail,
		"extend":   m.extend,
		"purge":    m.purge,
		"advance":  m.advance,
		"":         m.invariant,
	}
	if _, ok := m.store.(hookonce.ResponseStore); ok {
		actions["complete with"] = m.completeWith
	}
	return actions
}

// ref draws what the next action is about.
func (m *machine) ref(t *rapid.T) hookonce.Ref {
	ref := rapid.SampledFrom(m.refs()).Draw(t, "ref")
	m.touched = []hookonce.Ref{ref}
	return ref
}

func (m *machine) refs() (refs []hookonce.Ref) {
	for _, source := range m.sources {
		for _, key := range []string{"evt_1", "evt_2", ""} {
			refs = append(refs, hookonce.Ref{Source: source, Key: key})
		}
	}
	return refs
}

func (m *machine) request(t *rapid.T) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{
		Ref:    m.ref(t),
		Type:   rapid.SampledFrom([]string{"", "paid", "refunded"}).Draw(t, "type"),
		Digest: []byte(rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "digest")),
		Lease:  time.Duration(rapid.IntRange(-1, 3).Draw(t, "lease")) * time.Second,
		Pin:    rapid.Bool().Draw(t, "pin"),
	}
}

// held draws a claim that was won at some time; its token may be stale.
func (m *machine) held(t *rapid.T) hookonce.Claim {
	if len(m.claims) == 0 {
		return hookonce.Claim{Ref: m.ref(t), Token: 1}
	}
	c := rapid.SampledFrom(m.claims).Draw(t, "held")
	m.touched = []hookonce.Ref{c.Ref}
	return c
}

func (m *machine) claim(t *rapid.T) {
	req := m.request(t)
	got, err := m.store.Claim(context.Background(), req)
	want, wantErr := m.model.Claim(context.Background(), req)
	agree(t, "Claim", got, want, err, wantErr)
	if got.Verdict == hookonce.Acquired {
		m.claims = append(m.claims, got)
	}
}

func (m *machine) complete(t *rapid.T) {
	c := m.held(t)
	agree(t, "Complete", nil, nil, m.store.Complete(context.Background(), c), m.model.Complete(context.Background(), c))
}

func (m *machine) completeWith(t *rapid.T) {
	c, r := m.held(t), drawResponse(t)
	err := m.store.(hookonce.ResponseStore).CompleteWith(context.Background(), c, r)
	agree(t, "CompleteWith", nil, nil, err, m.model.CompleteWith(context.Background(), c, r))
}

func drawResponse(t *rapid.T) hookonce.Response {
	return response(rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "response"))
}

func (m *machine) fail(t *rapid.T) {
	c := m.held(t)
	f := hookonce.Failure{
		Dead: rapid.Bool().Draw(t, "dead"), Pin: rapid.Bool().Draw(t, "pinned"), Forget: rapid.Bool().Draw(t, "forget"),
		Err: errors.New(rapid.String().Draw(t, "error")),
	}
	agree(t, "Fail", nil, nil, m.store.Fail(context.Background(), c, f), m.model.Fail(context.Background(), c, f))
}

func (m *machine) extend(t *rapid.T) {
	c, d := m.held(t), time.Duration(rapid.IntRange(-1, 3).Draw(t, "extension"))*time.Second
	got, err := m.store.Extend(context.Background(), c, d)
	want, wantErr := m.model.Extend(context.Background(), c, d)
	agree(t, "Extend", got, want, err, wantErr)
}

// purge deletes everything that may go, in steps, because which claims a single step deletes is the
// store's choice.
func (m *machine) purge(t *rapid.T) {
	req := m.old(t)
	if rapid.Bool().Draw(t, "one source") {
		req.Source = rapid.SampledFrom(m.sources).Draw(t, "source")
		req.Kind = rapid.SampledFrom([]hookonce.PurgeKind{hookonce.PurgeEvents, hookonce.PurgeFailed}).Draw(t, "kind") // earlier rounds left failed ones of other sources
	} else if rapid.Bool().Draw(t, "all but one") {
		req.Except = []string{rapid.SampledFrom(m.sources).Draw(t, "except")}
	}
	m.touched = m.refs()
	agree(t, "Purge", purgeAll(t, m.store, req), purgeAll(t, m.model, req), nil, nil)
}

// old asks for what is some seconds old.
func (m *machine) old(t *rapid.T) hookonce.PurgeRequest {
	age := time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second
	return before(m.clock.Now().Add(-age), rapid.IntRange(1, 3).Draw(t, "limit"))
}

// purgeAll purges in steps, after it has counted what there is.
func purgeAll(t *rapid.T, s hookonce.Purger, req hookonce.PurgeRequest) (total int) {
	dry := req
	dry.Dry, dry.Limit = true, math.MaxInt32
	counted, err := s.Purge(context.Background(), dry)
	if err != nil {
		t.Fatalf("counting: %v", err)
	}
	for {
		n, err := s.Purge(context.Background(), req)
		if err != nil || n > req.Limit {
			t.Fatalf("Purge(limit %d) = %d, %v", req.Limit, n, err)
		}
		total += n
		if n < req.Limit {
			if total != counted {
				t.Fatalf("counted %d, and deleted %d", counted, total)
			}
			return total
		}
	}
}

func (m *machine) advance(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.Int64Range(1, 4_000_000).Draw(t, "microseconds")) * time.Microsecond)
}

// invariant runs after every action: both stores hold the same claims and the same responses.
func (m *machine) invariant(t *rapid.T) {
	responses, keeps := m.store.(hookonce.ResponseStore)
	for _, ref := range m.touched {
		got, err := m.store.Lookup(context.Background(), ref)
		want, wantErr := m.model.Lookup(context.Background(), ref)
		agree(t, "Lookup "+ref.String(), got, want, err, wantErr)
		if keeps {
			got, err := responses.Response(context.Background(), ref)
			want, wantErr := m.model.Response(context.Background(), ref)
			agree(t, "Response "+ref.String(), got, want, err, wantErr)
		}
	}
	m.touched = nil
}

// agree compares the answers of a store and its model: the results, and which of the errors that
// callers tell apart.
func agree(t *rapid.T, what string, got, want any, err, wantErr error) {
	t.Helper()
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: error is %v, the model's is %v", what, err, wantErr)
	}
	for _, target := range []error{
		hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrBusy, hookonce.ErrInvalidRef, hookonce.ErrUnknownOutcome,
		hookonce.ErrTraceLost, hookonce.ErrEffectExists, hookonce.ErrPinned, errDeclined,
	} {
		if errors.Is(err, target) != errors.Is(wantErr, target) {
			t.Fatalf("%s: error is %v, the model's is %v", what, err, wantErr)
		}
	}
	if d := diff(got, want); err == nil && d != "" {
		t.Fatalf("%s differs from the model: -store +model\n%s", what, d)
	}
}
