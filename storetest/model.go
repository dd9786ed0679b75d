package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
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
		m.ahead = f.ahead
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

// txMachine does the same to a store with transactions and to its model.
type txMachine[Tx any] struct {
	*machine
	tx    hookonce.TxStore[Tx]
	ahead bool
	kinds []string // what a handler can do
	names []string // of effects
	queue *queueMachine
}

func newTxMachine[Tx any](t *rapid.T, s hookonce.TxStore[Tx], clock *Clock, round int) *txMachine[Tx] {
	m := &txMachine[Tx]{
		machine: newMachine(t, s, clock, round), tx: s,
		names: []string{fmt.Sprintf("mail-%d", round), fmt.Sprintf("refund-%d", round)},
	}
	if _, ok := s.(hookonce.TxResponseStore[Tx]); ok {
		m.kinds = append(m.kinds, "keep")
	}
	if _, ok := s.(hookonce.Guards[Tx]); ok {
		m.kinds = append(m.kinds, "newer", "move")
	}
	if q, ok := s.(hookonce.Outbox[Tx]); ok {
		m.kinds = append(m.kinds, "enqueue", "enqueue")
		m.queue = newQueueMachine(t, m.machine, q, m.names)
	}
	return m
}

func (m *txMachine[Tx]) actions() map[string]func(*rapid.T) {
	actions := m.machine.actions()
	actions["within"] = m.within
	if m.queue != nil {
		m.queue.addTo(actions)
	}
	return actions
}

// step is one thing that a handler does.
type step struct {
	kind     string
	response hookonce.Response
	name     string // of a resource or an entity
	rank     hookonce.Rank
	from, to string
	effect   hookonce.Effect
}

func (m *txMachine[Tx]) step(t *rapid.T, ref hookonce.Ref) step {
	s := step{kind: rapid.SampledFrom(m.kinds).Draw(t, "kind")}
	switch s.kind {
	case "keep":
		s.response = drawResponse(t)
	case "newer":
		s.name = m.sources[rapid.IntRange(0, 1).Draw(t, "resource")]
		if kind := rapid.SampledFrom([]hookonce.RankKind{hookonce.RankVersion, hookonce.RankTime, ""}).Draw(t, "kind of rank"); kind != "" {
			s.rank = hookonce.Rank{Kind: kind, N: rapid.Int64Range(-1, 2).Draw(t, "rank")}
		}
	case "move":
		s.name = m.sources[rapid.IntRange(0, 1).Draw(t, "entity")]
		move := rapid.SampledFrom([][2]string{{"", "open"}, {"open", "paid"}, {"open", "void"}, {"paid", "open"}}).Draw(t, "move")
		s.from, s.to = move[0], move[1]
	case "enqueue":
		s.effect = hookonce.Effect{
			Ref: ref, Name: rapid.SampledFrom(m.names).Draw(t, "name"),
			Step:    rapid.SampledFrom([]string{"", "again"}).Draw(t, "step"),
			Payload: []byte(rapid.SampledFrom([]string{"", "payload"}).Draw(t, "payload")),
		}
		if d := rapid.IntRange(-2, 3).Draw(t, "due"); d != 0 {
			s.effect.Due = m.clock.Now().Add(time.Duration(d) * time.Second)
		}
	}
	return s
}

// handle is h as the function for Within. An error is returned without a store's own words, because its
// text is on record afterwards.
func handle[Tx any](h *handler, s hookonce.TxStore[Tx]) func(Tx, hookonce.Claim) error {
	return func(tx Tx, c hookonce.Claim) error {
		h.claim = c
		for _, do := range h.steps {
			told, err := perform(s, tx, c.Ref, do)
			h.told = append(h.told, told)
			for _, known := range []error{hookonce.ErrNotFound, hookonce.ErrEffectExists} {
				if errors.Is(err, known) {
					return known
				}
			}
			if err != nil {
				return err
			}
		}
		return h.outcome
	}
}

// perform returns what the handler is told.
func perform[Tx any](s hookonce.TxStore[Tx], tx Tx, ref hookonce.Ref, do step) (told string, err error) {
	ctx := context.Background()
	switch do.kind {
	case "keep":
		err = s.(hookonce.TxResponseStore[Tx]).KeepResponse(ctx, tx, ref, do.response)
	case "enqueue":
		err = s.(hookonce.Outbox[Tx]).Enqueue(ctx, tx, do.effect)
	case "newer":
		var newer bool
		newer, err = s.(hookonce.Guards[Tx]).Newer(ctx, tx, do.name, do.rank)
		told = fmt.Sprint("newer: ", newer)
	case "move":
		var state string
		var move hookonce.Move
		state, move, err = s.(hookonce.Guards[Tx]).Transition(ctx, tx, do.name, do.from, do.to)
		told = fmt.Sprint(move, " in ", state)
	}
	return told, err
}

// within runs a handler in both stores.
func (m *txMachine[Tx]) within(t *rapid.T) {
	req := m.request(t)
	var steps []step
	for range rapid.IntRange(0, min(4, len(m.kinds))).Draw(t, "steps") {
		steps = append(steps, m.step(t, req.Ref))
	}
	outcome := rapid.SampledFrom([]error{
		nil, nil, errDeclined, hookonce.Permanent(errDeclined), hookonce.Forget(errDeclined),
	}).Draw(t, "outcome")
	ctx := hookonce.ContextWithPin(context.Background(), req.Ref)
	if rapid.Bool().Draw(t, "reaches the outside") {
		hookonce.PinRequest(ctx)
	}
	h, modelH := handler{steps: steps, outcome: outcome}, handler{steps: steps, outcome: outcome}
	got, err := m.tx.Within(ctx, req, handle(&h, m.tx))
	want, wantErr := m.model.Within(ctx, req, handle(&modelH, hookonce.TxStore[*memstore.Tx](m.model)))
	agree(t, "Within", got, want, err, wantErr)
	if !m.ahead || modelH.claim.Verdict != 0 { // else it ran for nothing
		agree(t, "the handler's claim", h.claim, modelH.claim, nil, nil)
		agree(t, "what the handler was told", h.told, modelH.told, nil, nil)
	}
	if m.queue != nil {
		m.queue.compare(t)
	}
}

// queueMachine does the same to an outbox and to its model.
type queueMachine struct {
	*machine
	queue   outbox
	names   []string
	numbers map[int64]int64            // of effects: the model's, by the store's
	taken   [][2]hookonce.QueuedEffect // from the store and from the model
}

func newQueueMachine(t *rapid.T, m *machine, q outbox, names []string) *queueMachine {
	if _, err := q.Purge(context.Background(), oldEffects(m.clock.Now(), 1<<30)); err != nil {
		t.Fatalf("emptying the outbox: %v", err)
	}
	return &queueMachine{machine: m, queue: q, names: names, numbers: map[int64]int64{}}
}

func (m *queueMachine) addTo(actions map[string]func(*rapid.T)) {
	for name, action := range map[string]func(*rapid.T){
		"take effects": m.take, "complete effect": m.completeEffect, "fail effect": m.failEffect,
		"extend effect": m.extendEffect, "redrive effect": m.redrive, "purge effects": m.purgeEffects,
	} {
		actions[name] = func(t *rapid.T) { action(t); m.compare(t) }
	}
}

// alike gives the store's effects the numbers of the model's, and compares them.
func (m *queueMachine) alike(t *rapid.T, what string, got, want []hookonce.QueuedEffect) {
	t.Helper()
	got = slices.Clone(got)
	for i := range min(len(got), len(want)) {
		number, known := m.numbers[got[i].ID]
		if !known {
			number = want[i].ID
			m.numbers[got[i].ID] = number
		}
		got[i].ID = number
	}
	agree(t, what, got, want, nil, nil)
}

// compare checks that both outboxes hold the same. The store also has what is left of earlier rounds.
func (m *queueMachine) compare(t *rapid.T) {
	t.Helper()
	for _, state := range everyState {
		got, err := m.queue.Effects(context.Background(), state, 0, 1<<20)
		got = slices.DeleteFunc(got, func(e hookonce.QueuedEffect) bool { return !slices.Contains(m.names, e.Name) })
		want, wantErr := m.model.Effects(context.Background(), state, 0, 1<<20)
		agree(t, "Effects", nil, nil, err, wantErr)
		m.alike(t, fmt.Sprint("Effects ", state), got, want)
	}
}

func (m *queueMachine) take(t *rapid.T) {
	names := m.names[rapid.IntRange(0, 1).Draw(t, "first name"):]
	limit, d := rapid.IntRange(0, 3).Draw(t, "limit"), time.Duration(rapid.IntRange(0, 3).Draw(t, "lease"))*time.Second
	req := hookonce.TakeRequest{Names: names, Limit: limit, Suspects: rapid.IntRange(-1, 2).Draw(t, "suspects"), Lease: d}
	got, err := m.queue.TakeEffects(context.Background(), req)
	want, wantErr := m.model.TakeEffects(context.Background(), req)
	agree(t, "TakeEffects", nil, nil, err, wantErr)
	m.alike(t, "TakeEffects", got, want)
	for i := range got {
		m.taken = append(m.taken, [2]hookonce.QueuedEffect{got[i], want[i]})
	}
}

// owned draws an effect that was taken at some time; its token may be stale.
func (m *queueMachine) owned(t *rapid.T) (got, want hookonce.QueuedEffect) {
	if len(m.taken) == 0 {
		nothing := hookonce.QueuedEffect{ID: -1, Token: 1}
		return nothing, nothing
	}
	pair := rapid.SampledFrom(m.taken).Draw(t, "taken")
	return pair[0], pair[1]
}

func (m *queueMachine) completeEffect(t *rapid.T) {
	e, model := m.owned(t)
	agree(t, "CompleteEffect", nil, nil, m.queue.CompleteEffect(context.Background(), e), m.model.CompleteEffect(context.Background(), model))
}

func (m *queueMachine) failEffect(t *rapid.T) {
	e, model := m.owned(t)
	f := hookonce.Failure{Dead: rapid.Bool().Draw(t, "dead"), Err: errors.New(rapid.String().Draw(t, "error"))}
	retry := m.clock.Now().Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "retry")) * time.Second)
	agree(t, "FailEffect", nil, nil, m.queue.FailEffect(context.Background(), e, f, retry), m.model.FailEffect(context.Background(), model, f, retry))
}

func (m *queueMachine) extendEffect(t *rapid.T) {
	e, model := m.owned(t)
	d := time.Duration(rapid.IntRange(-1, 3).Draw(t, "extension")) * time.Second
	got, err := m.queue.ExtendEffect(context.Background(), e, d)
	want, wantErr := m.model.ExtendEffect(context.Background(), model, d)
	agree(t, "ExtendEffect", nil, nil, err, wantErr)
	m.alike(t, "ExtendEffect", []hookonce.QueuedEffect{got}, []hookonce.QueuedEffect{want})
}

func (m *queueMachine) redrive(t *rapid.T) {
	e, model := m.owned(t)
	agree(t, "RedriveEffect", nil, nil, m.queue.RedriveEffect(context.Background(), e.ID), m.model.RedriveEffect(context.Background(), model.ID))
}

// purgeEffects deletes everything that may go, in steps, because which effects a single step deletes is the
// store's choice.
func (m *queueMachine) purgeEffects(t *rapid.T) {
	req := m.old(t)
	req.Kind = hookonce.PurgeEffects
	agree(t, "Purge effects", purgeAll(t, m.queue, req), purgeAll(t, m.model, req), nil, nil)
}
