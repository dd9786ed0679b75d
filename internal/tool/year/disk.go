package year

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// What a call of the store comes to.
const (
	diskFail   = "fail"        // an error, and nothing is stored
	diskLost   = "lost"        // an error, and it is stored
	diskStall  = "stall"       // no answer before the caller gives up, and nothing is stored
	diskSilent = "silent"      // no answer before the caller gives up, and it is stored
	diskLate   = "late"        // no answer before the caller gives up, and it is stored after that
	diskSlow   = "slow"        // an answer, late
	diskKept   = "kept"        // it is stored at once, and the answer is late
	diskBefore = "dies-before" // the process dies before it is stored
	diskAfter  = "dies-after"  // and after
)

// The errors that processes see.
var (
	errDisk = errors.New("the store fails")
	errDead = errors.New("this process is dead")
)

// patience bounds how long a call stalls that has no deadline.
const patience = time.Minute

// diskFault waits for the next calls of a machine.
type diskFault struct {
	op, kind string
	last     time.Duration
}

// disk is the store as one process sees it. What a dead process calls reaches nothing.
type disk struct {
	journal.Store
	p     *process
	alone bool // no other process has it, and nothing happens in it after the death of this one
}

// faults are what waits for the calls of a machine.
type faults struct {
	mu    sync.Mutex
	armed []diskFault
	every time.Duration // that each call takes
	until time.Time     // so long
}

func (f *faults) arm(d diskFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, d)
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.every = nil, 0
}

// lag has every call take some time, for a while. That disturbs nobody.
func (f *faults) lag(every, last time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.every, f.until = every, time.Now().Add(last)
}

// lags is how long a call takes now.
func (f *faults) lags() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().After(f.until) {
		return 0
	}
	return f.every
}

// take returns the first that waits for the op.
func (f *faults) take(op string) (diskFault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range f.armed {
		if d.op == op {
			f.armed = append(f.armed[:i:i], f.armed[i+1:]...)
			return d, true
		}
	}
	return diskFault{}, false
}

// call makes one call of the store, as the plan has it.
func call[T any](ctx context.Context, d *disk, op string, do func(context.Context) (T, error)) (T, error) {
	var none T
	if d.p.isDead() {
		return none, errDead
	}
	if still := d.p.network.stallsFor(d.p.name); still > 0 {
		time.Sleep(still)
		if d.p.isDead() {
			return none, errDead
		}
	}
	if d.p.partedFromStore() {
		d.p.fired("disk/parted")
		return none, wait(ctx, d.p, patience)
	}
	if every := d.p.faults.lags(); every > 0 {
		d.p.count("lag")
		if err := wait(ctx, d.p, every); ctx.Err() != nil || d.p.isDead() {
			return none, err
		}
	}
	f, armed := d.p.faults.take(op)
	if !armed {
		return alive(d, do, ctx)
	}
	d.p.fired("disk/" + f.kind)
	d.p.fired("disk/" + op)
	d.p.log(d.p.name, "store: "+op+" "+f.kind)
	switch f.kind {
	case diskFail:
		return none, errDisk
	case diskLost:
		_, _ = do(ctx)
		return none, errDisk
	case diskStall:
		return none, wait(ctx, d.p, patience)
	case diskSilent:
		_, _ = do(ctx)
		return none, wait(ctx, d.p, patience)
	case diskLate:
		d.p.tasks.Go(func() {
			time.Sleep(f.last)
			if !d.alone || !d.p.isDead() {
				_, _ = do(context.WithoutCancel(ctx))
			}
		})
		return none, wait(ctx, d.p, patience)
	case diskSlow:
		if err := wait(ctx, d.p, f.last); ctx.Err() != nil {
			return none, err
		}
	case diskKept:
		answer, err := alive(d, do, ctx)
		if gaveUp := wait(ctx, d.p, f.last); ctx.Err() != nil || d.p.isDead() {
			return none, gaveUp
		}
		return answer, err
	case diskBefore:
		d.p.die("before " + op)
		return none, errDead
	case diskAfter:
		_, _ = do(ctx)
		d.p.die("after " + op)
		return none, errDead
	}
	return alive(d, do, ctx)
}

// alive makes the call and forgets the answer of a process that died meanwhile.
func alive[T any](d *disk, do func(context.Context) (T, error), ctx context.Context) (T, error) {
	var none T
	answer, err := do(ctx)
	if d.p.isDead() {
		return none, errDead
	}
	return answer, err
}

// wait waits until the caller gives up or dies, and at most for so long.
func wait(ctx context.Context, p *process, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.dead:
		return errDead
	case <-timer.C:
		return errDisk
	}
}

// do is call for what answers an error alone.
func do(ctx context.Context, d *disk, op string, f func(context.Context) error) error {
	_, err := call(ctx, d, op, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// sent is a batch as it is on its way to a database: what the caller does with its own after it gave up changes nothing.
func sent(batch []*journal.Record) []*journal.Record {
	own := make([]*journal.Record, len(batch))
	for i, r := range batch {
		e := *r.Event
		e.Header, e.Facts, e.Body, e.Digest = bytes.Clone(e.Header), bytes.Clone(e.Facts), bytes.Clone(e.Body), bytes.Clone(e.Digest)
		e.Destinations = slices.Clone(e.Destinations)
		own[i] = &journal.Record{Event: &e, ID: r.ID, Hold: slices.Clone(r.Hold), Ordered: slices.Clone(r.Ordered)}
	}
	return own
}

// Accept implements [journal.Store].
func (d *disk) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	batch = sent(batch)
	d.p.stamped("accept", now)
	return call(ctx, d, "accept", func(ctx context.Context) ([]journal.Result, error) {
		defer d.p.booking()()
		results, err := d.Store.Accept(ctx, batch, now, lease)
		if err == nil {
			d.p.accepted(d.p.identity(), batch, results)
		}
		return results, err
	})
}

// Take implements [journal.Store].
func (d *disk) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	want.Destinations = slices.Clone(want.Destinations)
	d.p.stamped("take", now)
	return call(ctx, d, "take", func(ctx context.Context) ([]*journal.Work, error) {
		done := d.p.booking()
		work, err := d.Store.Take(ctx, now, lease, want)
		circling := err == nil && d.p.taken(d.p.identity(), work)
		done()
		if circling {
			time.Sleep(time.Second)
		}
		return work, err
	})
}

// Extend implements [journal.Store].
func (d *disk) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	held = slices.Clone(held)
	return call(ctx, d, "extend", func(ctx context.Context) ([]bool, error) {
		defer d.p.booking()()
		extended, err := d.Store.Extend(ctx, held, lease)
		if err == nil {
			d.p.extended(d.p.identity(), held, extended)
		}
		return extended, err
	})
}

// Finish implements [journal.Store].
func (d *disk) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	outcomes = slices.Clone(outcomes)
	return call(ctx, d, "finish", func(ctx context.Context) ([]bool, error) {
		defer d.p.booking()()
		applied, err := d.Store.Finish(ctx, outcomes)
		if err == nil {
			d.p.finished(d.p.identity(), outcomes, applied)
		}
		return applied, err
	})
}

// Purge implements [journal.Store].
func (d *disk) Purge(ctx context.Context, p journal.Purge) (journal.Purged, error) {
	return call(ctx, d, "purge", func(ctx context.Context) (journal.Purged, error) {
		defer d.p.booking()()
		before := d.p.openWork()
		purged, err := d.Store.Purge(ctx, p)
		d.p.purged(d.p.name, p, purged, before)
		return purged, err
	})
}

// RecordBypassed implements [journal.Store].
func (d *disk) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	return do(ctx, d, "bypassed", func(ctx context.Context) error { return d.Store.RecordBypassed(ctx, outcomes) })
}

// RecordDuplicates implements [journal.Store].
func (d *disk) RecordDuplicates(ctx context.Context, seen []journal.DuplicateReceipt) error {
	return do(ctx, d, "duplicates", func(ctx context.Context) error { return d.Store.RecordDuplicates(ctx, seen) })
}

// Announce implements [journal.Store].
func (d *disk) Announce(ctx context.Context, g journal.Gateway, forget time.Time) error {
	return do(ctx, d, "announce", func(ctx context.Context) error { return d.Store.Announce(ctx, g, forget) })
}

// Withdraw implements [journal.Store].
func (d *disk) Withdraw(ctx context.Context, id string) error {
	return do(ctx, d, "withdraw", func(ctx context.Context) error { return d.Store.Withdraw(ctx, id) })
}

// AddTallies implements [journal.Store].
func (d *disk) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	return do(ctx, d, "tallies", func(ctx context.Context) error { return d.Store.AddTallies(ctx, process, seq, points) })
}

// ForgetTallies implements [journal.Store].
func (d *disk) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	return call(ctx, d, "forget", func(ctx context.Context) (bool, error) { return d.Store.ForgetTallies(ctx, now) })
}

// RecordAudit implements [journal.Store].
func (d *disk) RecordAudit(ctx context.Context, a journal.Audit) error {
	return do(ctx, d, "audit", func(ctx context.Context) error { return d.Store.RecordAudit(ctx, a) })
}

// Close implements [journal.Store].
func (d *disk) Close() error {
	d.p.site.store.close(d.Store)
	return nil
}

// Statuses implements [journal.Store].
func (d *disk) Statuses(ctx context.Context, deliveries []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	return call(ctx, d, "statuses", func(ctx context.Context) ([]journal.DeliveryStatus, error) { return d.Store.Statuses(ctx, deliveries) })
}

// Orphans implements [journal.Store].
func (d *disk) Orphans(ctx context.Context, now time.Time) (int, error) {
	return call(ctx, d, "orphans", func(ctx context.Context) (int, error) { return d.Store.Orphans(ctx, now) })
}

// Stats implements [journal.Store].
func (d *disk) Stats(ctx context.Context) (journal.Stats, error) {
	return call(ctx, d, "stats", func(ctx context.Context) (journal.Stats, error) { return d.Store.Stats(ctx) })
}

// List implements [journal.Store].
func (d *disk) List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error) {
	return call(ctx, d, "list", func(ctx context.Context) (journal.Page, error) { return d.Store.List(ctx, f, before, limit) })
}

// Arrivals implements [journal.Store].
func (d *disk) Arrivals(ctx context.Context, first int64, limit int) ([]journal.Arrival, error) {
	return call(ctx, d, "arrivals", func(ctx context.Context) ([]journal.Arrival, error) { return d.Store.Arrivals(ctx, first, limit) })
}

// Find implements [journal.Store].
func (d *disk) Find(ctx context.Context, source, key string) (int64, error) {
	return call(ctx, d, "find", func(ctx context.Context) (int64, error) { return d.Store.Find(ctx, source, key) })
}

// FindAnywhere implements [journal.Store].
func (d *disk) FindAnywhere(ctx context.Context, key string) ([]journal.Summary, error) {
	return call(ctx, d, "find anywhere", func(ctx context.Context) ([]journal.Summary, error) { return d.Store.FindAnywhere(ctx, key) })
}

// History implements [journal.Store].
func (d *disk) History(ctx context.Context, id int64) (*journal.History, error) {
	return call(ctx, d, "history", func(ctx context.Context) (*journal.History, error) { return d.Store.History(ctx, id) })
}

// FailureGroups implements [journal.Store].
func (d *disk) FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error) {
	return call(ctx, d, "failures", func(ctx context.Context) (journal.Failures, error) { return d.Store.FailureGroups(ctx, since) })
}

// Open implements [journal.Store].
func (d *disk) Open(ctx context.Context) ([]journal.OpenCount, error) {
	return call(ctx, d, "open", func(ctx context.Context) ([]journal.OpenCount, error) { return d.Store.Open(ctx) })
}

// Replay implements [journal.Store].
func (d *disk) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	return call(ctx, d, "replay", func(ctx context.Context) (journal.Replayed, error) { return d.Store.Replay(ctx, r, limit) })
}

// SetPaused implements [journal.Store].
func (d *disk) SetPaused(ctx context.Context, p journal.Pause, paused bool) (bool, error) {
	return call(ctx, d, "pause", func(ctx context.Context) (bool, error) { return d.Store.SetPaused(ctx, p, paused) })
}

// Pauses implements [journal.Store].
func (d *disk) Pauses(ctx context.Context) ([]journal.Pause, error) {
	return call(ctx, d, "pauses", func(ctx context.Context) ([]journal.Pause, error) { return d.Store.Pauses(ctx) })
}

// Audits implements [journal.Store].
func (d *disk) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	return call(ctx, d, "audits", func(ctx context.Context) ([]journal.Audit, error) { return d.Store.Audits(ctx, before, limit) })
}

// Gateways implements [journal.Store].
func (d *disk) Gateways(ctx context.Context) ([]journal.Gateway, error) {
	return call(ctx, d, "gateways", func(ctx context.Context) ([]journal.Gateway, error) { return d.Store.Gateways(ctx) })
}

// Tallies implements [journal.Store].
func (d *disk) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	return call(ctx, d, "tally", func(ctx context.Context) ([]tally.Point, error) { return d.Store.Tallies(ctx, q) })
}

// ChangeAlerts implements [journal.Store].
func (d *disk) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	return call(ctx, d, "alerts", func(ctx context.Context) (bool, error) { return d.Store.ChangeAlerts(ctx, try, change) })
}

// Alerts implements [journal.Store].
func (d *disk) Alerts(ctx context.Context) (*journal.AlertBook, error) {
	return call(ctx, d, "alert-book", func(ctx context.Context) (*journal.AlertBook, error) { return d.Store.Alerts(ctx) })
}

// TakeNotices implements [journal.Store].
func (d *disk) TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) ([]journal.Notice, error) {
	return call(ctx, d, "take-notices", func(ctx context.Context) ([]journal.Notice, error) {
		return d.Store.TakeNotices(ctx, now, lease, addresses, limit)
	})
}

// FinishNotices implements [journal.Store].
func (d *disk) FinishNotices(ctx context.Context, outcomes []journal.NoticeOutcome) ([]bool, error) {
	return call(ctx, d, "notices", func(ctx context.Context) ([]bool, error) { return d.Store.FinishNotices(ctx, outcomes) })
}

// Known implements [journal.Store].
func (d *disk) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	return call(ctx, d, "known", func(ctx context.Context) (map[string]journal.Known, error) { return d.Store.Known(ctx, source, keys) })
}

// Marks implements [journal.Store].
func (d *disk) Marks(ctx context.Context) ([]journal.Mark, error) {
	return call(ctx, d, "marks", func(ctx context.Context) ([]journal.Mark, error) { return d.Store.Marks(ctx) })
}

// MissingCounts implements [journal.Store].
func (d *disk) MissingCounts(ctx context.Context, now time.Time) ([]journal.MissingCount, error) {
	return call(ctx, d, "missing", func(ctx context.Context) ([]journal.MissingCount, error) { return d.Store.MissingCounts(ctx, now) })
}

// Ping implements [journal.Store].
func (d *disk) Ping(ctx context.Context) error {
	return do(ctx, d, "ping", func(ctx context.Context) error { return d.Store.Ping(ctx) })
}
