package journaltest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// ErrInjected is the error of a call that [Faulty] made fail.
var ErrInjected = errors.New("journaltest: injected failure")

// Op names a method of [journal.Store].
type Op string

// The methods that [Faulty] can disturb.
const (
	OpAccept   Op = "accept"
	OpTake     Op = "take"
	OpExtend   Op = "extend"
	OpFinish   Op = "finish"
	OpOrphans  Op = "orphans"
	OpPurge    Op = "purge"
	OpStats    Op = "stats"
	OpPing     Op = "ping"
	OpStatuses Op = "statuses"

	OpBypassed Op = "bypassed"
	OpTallies  Op = "tallies"
	OpForget   Op = "forget tallies"
	OpAlerts   Op = "alerts"  // changing them
	OpNotices  Op = "notices" // recording what came of them

	OpKnown       Op = "known"
	OpTakeMark    Op = "take mark"
	OpAdvanceMark Op = "advance mark"
	OpReleaseMark Op = "release mark"
	OpDismiss     Op = "dismiss missing"

	OpReplay Op = "replay"
)

// Mode says how a call fails.
type Mode int

const (
	// NotPersisted fails a call before it reaches the store.
	NotPersisted Mode = iota
	// Persisted lets the store do its work and reports failure all the same: what a connection does
	// that breaks during the commit.
	Persisted
)

// Faulty wraps a [journal.Store] and makes chosen calls fail or wait. It is safe for concurrent use,
// and what it has no [Op] for is passed through undisturbed.
type Faulty struct {
	journal.Store

	mu     sync.Mutex
	faults map[Op]fault
	gates  map[Op]*Gate
	calls  map[Op]int
}

type fault struct {
	left int
	mode Mode
}

var _ journal.Store = (*Faulty)(nil)

// NewFaulty wraps store; until told otherwise it passes everything through.
func NewFaulty(store journal.Store) *Faulty {
	return &Faulty{Store: store, faults: map[Op]fault{}, gates: map[Op]*Gate{}, calls: map[Op]int{}}
}

// Fail makes the next n calls of op fail in the given mode with [ErrInjected]. A negative n lasts
// until the next Fail of that op; 0 heals it.
func (f *Faulty) Fail(op Op, n int, mode Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[op] = fault{n, mode}
}

// Calls returns how many calls of op have begun, the failed ones included.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Gate holds calls back; see [Faulty.Block].
type Gate struct {
	// Arrived receives once for every call that came to the gate. Its buffer holds 1024.
	Arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// Open lets all calls through that wait and that will come. It may be called more than once.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Block makes calls of op wait in front of the store until the returned gate is opened or their
// context ends. A later Block of the same op replaces the gate for later calls.
func (f *Faulty) Block(op Op) *Gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &Gate{Arrived: make(chan struct{}, 1024), open: make(chan struct{})}
	f.gates[op] = g
	return g
}

// enter counts a call, waits at its gate, and takes one fault if there is one.
func (f *Faulty) enter(ctx context.Context, op Op) (fails bool, mode Mode, err error) {
	f.mu.Lock()
	f.calls[op]++
	g := f.gates[op]
	f.mu.Unlock()
	if g != nil {
		g.Arrived <- struct{}{}
		select {
		case <-g.open:
		case <-ctx.Done():
			return false, 0, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.faults[op]
	if next.left == 0 {
		return false, 0, nil
	}
	if next.left > 0 {
		f.faults[op] = fault{next.left - 1, next.mode}
	}
	return true, next.mode, nil
}

// disturb runs call under the faults and gates of op.
func disturb[T any](ctx context.Context, f *Faulty, op Op, call func() (T, error)) (T, error) {
	var zero T
	fails, mode, err := f.enter(ctx, op)
	switch {
	case err != nil:
		return zero, err
	case !fails:
		return call()
	case mode == Persisted:
		if _, err := call(); err != nil {
			return zero, err
		}
	}
	return zero, ErrInjected
}

// Accept implements [journal.Store].
func (f *Faulty) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	return disturb(ctx, f, OpAccept, func() ([]journal.Result, error) { return f.Store.Accept(ctx, batch, now, lease) })
}

// Take implements [journal.Store].
func (f *Faulty) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	return disturb(ctx, f, OpTake, func() ([]*journal.Work, error) { return f.Store.Take(ctx, now, lease, want) })
}

// Extend implements [journal.Store].
func (f *Faulty) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	return disturb(ctx, f, OpExtend, func() ([]bool, error) { return f.Store.Extend(ctx, held, lease) })
}

// Finish implements [journal.Store].
func (f *Faulty) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	return disturb(ctx, f, OpFinish, func() ([]bool, error) { return f.Store.Finish(ctx, outcomes) })
}

// RecordBypassed implements [journal.Store].
func (f *Faulty) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	_, err := disturb(ctx, f, OpBypassed, func() (struct{}, error) { return struct{}{}, f.Store.RecordBypassed(ctx, outcomes) })
	return err
}

// Statuses implements [journal.Store].
func (f *Faulty) Statuses(ctx context.Context, deliveries []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	return disturb(ctx, f, OpStatuses, func() ([]journal.DeliveryStatus, error) { return f.Store.Statuses(ctx, deliveries) })
}

// AddTallies implements [journal.Store].
func (f *Faulty) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	_, err := disturb(ctx, f, OpTallies, func() (struct{}, error) {
		return struct{}{}, f.Store.AddTallies(ctx, process, seq, points)
	})
	return err
}

// ForgetTallies implements [journal.Store].
func (f *Faulty) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	return disturb(ctx, f, OpForget, func() (bool, error) { return f.Store.ForgetTallies(ctx, now) })
}

// ChangeAlerts implements [journal.Store].
func (f *Faulty) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	return disturb(ctx, f, OpAlerts, func() (bool, error) { return f.Store.ChangeAlerts(ctx, try, change) })
}

// FinishNotices implements [journal.Store].
func (f *Faulty) FinishNotices(ctx context.Context, outcomes []journal.NoticeOutcome) ([]bool, error) {
	return disturb(ctx, f, OpNotices, func() ([]bool, error) { return f.Store.FinishNotices(ctx, outcomes) })
}

// Known implements [journal.Store].
func (f *Faulty) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	return disturb(ctx, f, OpKnown, func() (map[string]journal.Known, error) { return f.Store.Known(ctx, source, keys) })
}

// TakeMark implements [journal.Store].
func (f *Faulty) TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m journal.Mark, taken bool, err error) {
	type answer struct {
		mark  journal.Mark
		taken bool
	}
	a, err := disturb(ctx, f, OpTakeMark, func() (a answer, err error) {
		a.mark, a.taken, err = f.Store.TakeMark(ctx, source, holder, now, lease)
		return a, err
	})
	return a.mark, a.taken, err
}

// AdvanceMark implements [journal.Store].
func (f *Faulty) AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (bool, error) {
	return disturb(ctx, f, OpAdvanceMark, func() (bool, error) { return f.Store.AdvanceMark(ctx, source, token, a) })
}

// ReleaseMark implements [journal.Store].
func (f *Faulty) ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (bool, error) {
	return disturb(ctx, f, OpReleaseMark, func() (bool, error) { return f.Store.ReleaseMark(ctx, source, token, r) })
}

// DismissMissing implements [journal.Store].
func (f *Faulty) DismissMissing(ctx context.Context, d journal.Dismissal) (int64, error) {
	return disturb(ctx, f, OpDismiss, func() (int64, error) { return f.Store.DismissMissing(ctx, d) })
}

// Replay implements [journal.Store].
func (f *Faulty) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	return disturb(ctx, f, OpReplay, func() (journal.Replayed, error) { return f.Store.Replay(ctx, r, limit) })
}

// Orphans implements [journal.Store].
func (f *Faulty) Orphans(ctx context.Context, now time.Time) (int, error) {
	return disturb(ctx, f, OpOrphans, func() (int, error) { return f.Store.Orphans(ctx, now) })
}

// Purge implements [journal.Store].
func (f *Faulty) Purge(ctx context.Context, p journal.Purge) (journal.Purged, error) {
	return disturb(ctx, f, OpPurge, func() (journal.Purged, error) { return f.Store.Purge(ctx, p) })
}

// Stats implements [journal.Store].
func (f *Faulty) Stats(ctx context.Context) (journal.Stats, error) {
	return disturb(ctx, f, OpStats, func() (journal.Stats, error) { return f.Store.Stats(ctx) })
}

// Ping implements [journal.Store].
func (f *Faulty) Ping(ctx context.Context) error {
	_, err := disturb(ctx, f, OpPing, func() (struct{}, error) { return struct{}{}, f.Store.Ping(ctx) })
	return err
}
