package overview

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

const (
	fresh       = time.Second            // for so long a snapshot is shown to all who ask
	askTime     = 2 * time.Second        // for one question, and that the others wait for one that takes longer
	longTime    = 30 * time.Second       // for a question that reads much, which goes on beside the others
	leisure     = 5                      // times as long as its answer took such a question is not put again
	waitTime    = 250 * time.Millisecond // that somebody waits who can be shown the snapshot before
	openEvery   = 5 * time.Second        // between two counts of the open deliveries, which read all of them
	failEvery   = 5 * time.Second        // between two looks at what failed
	statsEvery  = time.Minute            // between two looks at how large the store is, and at what reconciliations found
	minuteEvery = tally.Every            // between two looks at the counts of minutes, as often as there are new ones
	hourEvery   = 5 * time.Minute        // between two looks at those of hours
	againEvery  = 30 * time.Second       // at most between a question that was not answered and the same again
	commitSpan  = 10 * time.Second       // over which commits are averaged at least
	drainLeast  = 30 * time.Second       // over which it is seen at least whether a backlog gets shorter
)

// DrainSpan is over how long it is seen at most whether a backlog gets shorter.
const DrainSpan = 5 * time.Minute

// Records is what is read of the journal's store. Its methods are called by several goroutines at a
// time.
type Records interface {
	Open(ctx context.Context) ([]journal.OpenCount, error)
	Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error)
	FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error)
	History(ctx context.Context, id int64) (*journal.History, error)
	List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error)
	Stats(ctx context.Context) (journal.Stats, error)
}

// Upkeep is what the process knows of its work on the store, since it started.
type Upkeep struct {
	Commits     int64         // transactions that made events durable
	CommitTime  time.Duration // of all of them
	Unrecorded  int64         // events that went past the store
	Cleaned     time.Time     // when there last was nothing more to delete
	Partitioned time.Time     // the end of the last partition; zero: there are none
}

// ErrFull is what [Options.Ready] returns if the store is well, and takes events too slowly.
var ErrFull = errors.New("the queue is full")

// Options are what an [Overview] stands on. All are needed unless it is said otherwise. Functions are called by one
// goroutine at a time, but for Records.
type Options struct {
	// Fleet returns the destinations without their open deliveries. It must be cheap, however many are open.
	Fleet   func(context.Context) (fleet.DestinationList, error)
	Records Records
	// Recent returns what this process counted, which is not in the store yet.
	Recent func(tally.Query) []tally.Point
	// Sources returns the sources as they are configured: their names, providers, paths and destinations, when their secrets
	// begin and end, and how often they are compared.
	Sources func() []SourceState
	// Ready returns why a sender would be refused now.
	Ready func() error
	// Gone reports whether the store is a file that was taken away while it was open. Nil: it is no file.
	Gone func() bool
	// Upkeep returns what the process did with the store.
	Upkeep func() Upkeep
	// Reconciled returns the latest result of each question that was put to `hookonce reconcile effects`. Nil: there are none.
	Reconciled func(context.Context) ([]Reconciled, error)
	// Marks returns how far sources were compared with their senders' lists. Nil: none is.
	Marks func(context.Context) ([]journal.Mark, error)
	// Missing counts what never arrived, by source. Nil: nobody looks.
	Missing func(context.Context) ([]journal.MissingCount, error)
	// Cells returns the other cells. Nil: there are none.
	Cells func() []CellState
	// Free returns how many bytes the store may still grow by; 0 if that is not known.
	Free func() int64
	// Capacity returns how large the store may become, where Free does not know; 0 if nobody said. Nil: nobody did.
	Capacity func() int64
	// Config is [Snapshot.Config].
	Config string
	Now    func() time.Time
}

// Overview makes snapshots. Its methods are safe for concurrent use.
type Overview struct {
	opt    Options
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu   sync.Mutex
	last *Snapshot
	next chan struct{} // closed when the snapshot that is being made is there; nil: none is

	known // by the one goroutine that makes a snapshot
}

// known is what was read last.
type known struct {
	fleet      part[fleet.DestinationList]
	open       part[[]journal.OpenCount]
	stats      part[journal.Stats]
	failures   part[journal.Failures]
	minutes    part[[]tally.Point]
	hours      part[[]tally.Point]
	before     part[map[string]time.Time] // see lastBefore
	reconciled part[[]Reconciled]
	marks      part[[]journal.Mark]
	missing    part[[]journal.MissingCount]
	joined     fleet.DestinationList // fleet, with open
	blocked    map[string]*Blocked
	past       []tally.Point // hours, with the one that goes on
	seen       map[string]seen
	beside     bool // a question goes on beside the others

	away, unwritable, full *Trouble
	commits                []commitSample
	backlogs               []backlogSample // of each count of the open deliveries within DrainSpan
	began                  time.Time
}

// seen is what the minutes of a source said: it stays known when they are too old to be counted, which is when hours say no more
// than in which of them it was.
type seen struct {
	verified    time.Time // the last minute with something authentic
	last, first time.Time // the first failure since last, as they were shown
}

type commitSample struct {
	at time.Time
	Upkeep
}

// backlogSample is how many deliveries were open and not dead, by destination, and which were paused.
type backlogSample struct {
	at     time.Time
	of     map[string]int64
	paused map[string]bool
}

// part is what a question was answered last.
type part[T any] struct {
	name   string
	value  T
	read   time.Time // when it was asked for what was answered
	asked  time.Time // when it was asked for, which may have failed since
	err    error
	failed time.Time      // when it was asked for without an answer for the first time since it was read
	rest   time.Duration  // since asked, before it is asked for again; 0: it was answered in time
	coming chan answer[T] // of a question that goes on beside the others; nil: it does not
	giveUp func()         // ends it
}

// answer is what came of a question, and how long it took.
type answer[T any] struct {
	value T
	err   error
	took  time.Duration
}

// errComing says why a part is not there yet.
var errComing = errors.New("the store takes its time to answer; the answer is waited for")

// due reports whether a question is to be put: not if that was done a moment ago, with or without
// success. One that the store cannot answer must not keep it busy, and one that failed by chance is
// not to be missing for as long as an answer is good.
func (p *part[T]) due(now time.Time, every time.Duration) bool {
	if p.err != nil {
		every = min(every, againEvery)
	}
	age := now.Sub(p.asked)
	return p.asked.IsZero() || age < 0 || age >= max(every, p.rest)
}

// take keeps an answer. After a failure what was known before stays.
func (p *part[T]) take(a answer[T]) {
	switch p.err = a.err; {
	case a.err == nil:
		p.value, p.read, p.failed = a.value, p.asked, time.Time{}
	case p.failed.IsZero():
		p.failed = p.asked
	}
}

// refresh puts a question if it is due. It takes no time of other ones.
func (p *part[T]) refresh(ctx context.Context, now time.Time, every time.Duration, ask func(context.Context) (T, error)) {
	if !p.due(now, every) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	p.asked = now
	value, err := ask(ctx)
	p.take(answer[T]{value: value, err: err})
}

// refreshLarge is refresh for a question that reads more the more there is, such as a count of all
// that is open after an outage: what takes longest is wanted most then. One that is not answered in
// the time of the others goes on beside them, and a later snapshot has its answer. Only one does so
// at a time, because it has a connection that events cannot have. It asks the store, and uses
// nothing of v.
func (p *part[T]) refreshLarge(v *Overview, now time.Time, every time.Duration, ask func(context.Context) (T, error)) {
	if p.coming != nil {
		select {
		case a := <-p.coming:
			p.coming, p.rest, v.beside = nil, leisure*a.took, false
			p.take(a)
		default:
			return
		}
	}
	switch {
	case v.beside && p.rest > 0: // it would not be answered in time
		return
	case v.beside:
		p.refresh(v.ctx, now, every, ask)
		return
	case !p.due(now, every):
		return
	}
	coming := make(chan answer[T], 1)
	ctx, cancel := context.WithTimeout(v.ctx, longTime)
	p.asked = now
	v.asking.Go(func() {
		defer cancel()
		began := time.Now()
		value, err := ask(ctx)
		coming <- answer[T]{value, err, time.Since(began)}
	})
	late := time.NewTimer(askTime)
	defer late.Stop()
	select {
	case a := <-coming:
		p.rest = 0
		p.take(a)
	case <-late.C:
		if p.coming, p.giveUp, v.beside = coming, cancel, true; p.read.IsZero() {
			p.err = errComing
		}
	}
}

// drop gives up a question that goes on beside the others. It is put anew at once when the store
// is asked again, as one that it did not answer is.
func (p *part[T]) drop(v *Overview) {
	if p.coming != nil || p.err != nil {
		p.asked = time.Time{}
	}
	if p.coming != nil {
		p.giveUp()
		p.coming, v.beside = nil, false
	}
	p.rest = 0
}

func (p *part[T]) tell() Part {
	t := Part{Name: p.name, Read: p.read.UTC()}
	if p.err != nil {
		t.Error, t.Failing = p.err.Error(), p.failed.UTC()
	}
	return t
}

// New returns what makes snapshots when it is asked for them. It must be closed.
func New(o Options) *Overview {
	v := &Overview{opt: o}
	v.seen = map[string]seen{}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.began = o.Now()
	v.fleet.name, v.open.name, v.stats.name, v.failures.name = PartDestinations, PartOpen, PartRows, PartFailures
	v.minutes.name, v.hours.name, v.before.name = PartMinutes, PartHours, PartLast
	v.reconciled.name, v.marks.name, v.missing.name = PartReconciliations, PartMarks, PartMissing
	return v
}

// Close ends what is being asked. Snapshots are the last one from then on.
func (v *Overview) Close() {
	v.cancel()
	v.asking.Wait()
}

// Snapshot returns how all stands: not older than a second, unless the store does not answer in time. Only the first
// call waits for it longer than a moment. It returns an error if ctx ends before there is any.
func (v *Overview) Snapshot(ctx context.Context) (*Snapshot, error) {
	v.mu.Lock()
	last, next := v.last, v.next
	if last != nil {
		if age := v.opt.Now().Sub(last.At); age >= 0 && age < fresh {
			v.mu.Unlock()
			return last, nil
		}
	}
	if next == nil && v.ctx.Err() == nil {
		next = make(chan struct{})
		v.next = next
		v.asking.Go(func() { v.renew(next) })
	}
	v.mu.Unlock()
	var late <-chan time.Time
	if last != nil {
		timer := time.NewTimer(waitTime)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-next:
	case <-late:
		return last, nil
	case <-v.ctx.Done():
		return last, errors.Join(v.ctx.Err())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last, nil
}

// renew makes a snapshot, and tells those who wait.
func (v *Overview) renew(done chan struct{}) {
	now := v.opt.Now()
	v.ask(v.ctx, now)
	s := v.draw(now)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.next = s, nil
	close(done)
}

// lastBefore returns when sources had something last, of those of which something is expected and that had nothing in the hours
// of four weeks: they are silent, and stay so, whenever the process was started.
func (v *Overview) lastBefore(ctx context.Context, now time.Time) (map[string]time.Time, error) {
	lately, last := map[string]bool{}, map[string]time.Time{}
	for _, p := range v.hours.value {
		lately[p.Source] = lately[p.Source] || slices.Contains(verified, p.What)
	}
	for _, s := range v.opt.Sources() {
		if s.ExpectEvery == 0 || lately[s.Name] {
			continue
		}
		points, err := v.opt.Records.Tallies(ctx, tally.Query{From: now.Add(-tally.KeepHours), Until: now.Add(-weeks).Truncate(time.Hour), Step: time.Hour, Source: s.Name, Whats: verified})
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			last[s.Name] = later(last[s.Name], p.Minute.Add(59*time.Minute))
		}
	}
	return last, nil
}

// ask puts the questions whose answers are too old, one after the other, so that they take one
// connection of the store, and one that goes on another. It is away if it takes nothing and does
// not answer the cheapest of them either: then it is not asked the others. A question that it is
// only slow to answer makes that part old.
func (v *Overview) ask(ctx context.Context, now time.Time) {
	err := v.opt.Ready()
	v.fleet.refresh(ctx, now, fresh, v.opt.Fleet)
	if err != nil && v.fleet.err != nil {
		v.away = trouble(v.away, v.fleet.err, now)
		v.open.drop(v)
		v.stats.drop(v)
		v.minutes.drop(v)
		v.hours.drop(v)
		return
	}
	v.away = nil
	if errors.Is(err, ErrFull) {
		v.full, v.unwritable = trouble(v.full, err, now), nil
	} else {
		v.full, v.unwritable = nil, trouble(v.unwritable, err, now)
	}
	v.open.refreshLarge(v, now, openEvery, v.opt.Records.Open)
	v.joined = v.fleet.value.WithOpen(v.open.value)
	v.stats.refreshLarge(v, now, statsEvery, v.opt.Records.Stats)
	v.minutes.refreshLarge(v, now, minuteEvery, func(ctx context.Context) ([]tally.Point, error) {
		return v.opt.Records.Tallies(ctx, minutesOf(now))
	})
	every := hourEvery
	if !v.hours.asked.Truncate(time.Hour).Equal(now.Truncate(time.Hour)) {
		every = 0 // the hour before is complete
	}
	v.hours.refreshLarge(v, now, every, func(ctx context.Context) ([]tally.Point, error) {
		return v.opt.Records.Tallies(ctx, tally.Query{From: now.Add(-weeks).Truncate(time.Hour), Until: now.Add(time.Hour), Step: time.Hour, Whats: hourly})
	})
	if every = hourEvery; !v.before.asked.Truncate(time.Hour).Equal(now.Truncate(time.Hour)) {
		every = 0
	}
	if v.hours.err == nil { // what had something lately is known
		v.before.refresh(ctx, now, every, func(ctx context.Context) (map[string]time.Time, error) { return v.lastBefore(ctx, now) })
	}
	if v.opt.Reconciled != nil {
		v.reconciled.refresh(ctx, now, statsEvery, v.opt.Reconciled)
	}
	if v.opt.Marks != nil && slices.ContainsFunc(v.opt.Sources(), isCompared) {
		v.marks.refresh(ctx, now, minuteEvery, v.opt.Marks)
	}
	if v.opt.Missing != nil {
		v.missing.refresh(ctx, now, minuteEvery, v.opt.Missing)
	}
	v.failures.refresh(ctx, now, failEvery, func(ctx context.Context) (f journal.Failures, err error) {
		if !anyFailed(&v.joined) {
			return f, nil
		}
		if f, err = v.opt.Records.FailureGroups(ctx, now.Add(-24*time.Hour)); err == nil {
			v.blocked, err = v.blocks(ctx, &f)
		}
		return f, err
	})
}

// trouble goes on with what was wrong before, or begins.
func trouble(before *Trouble, err error, now time.Time) *Trouble {
	switch {
	case err == nil:
		return nil
	case before != nil:
		return &Trouble{before.Since, err.Error()}
	}
	return &Trouble{now.UTC(), err.Error()}
}

func anyFailed(l *fleet.DestinationList) bool {
	for i := range l.Destinations {
		if open(&l.Destinations[i], journal.Failed)+open(&l.Destinations[i], journal.Dead) > 0 {
			return true
		}
	}
	return false
}

func open(d *fleet.Destination, state journal.State) int64 {
	for _, o := range d.Open {
		if o.State == string(state) {
			return o.Count
		}
	}
	return 0
}

// maxBlocked is how far the events are counted that wait for another one.
const maxBlocked = 100

// blocks finds what holds up ordering groups: of each destination the latest event that fails, if later ones of its
// resource wait.
func (v *Overview) blocks(ctx context.Context, f *journal.Failures) (map[string]*Blocked, error) {
	all := map[string]*Blocked{}
	for i := range v.joined.Destinations {
		d := &v.joined.Destinations[i]
		if d.Order != "by_resource" || open(d, journal.Failed) == 0 || open(d, journal.Pending) == 0 {
			continue
		}
		for _, g := range f.Open {
			if g.Destination != d.Name || g.Count == g.Dead || len(g.Samples) == 0 {
				continue
			}
			h, err := v.opt.Records.History(ctx, g.Samples[0].EventID)
			if errors.Is(err, journal.ErrNoEvent) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if h.Resource == "" {
				continue
			}
			page, err := v.opt.Records.List(ctx, journal.Filter{Source: h.Source, Resource: h.Resource, Destination: d.Name, State: journal.Pending}, 0, maxBlocked)
			if err != nil {
				return nil, err
			}
			if n := int64(len(page.Events)); n > 0 && (all[d.Name] == nil || all[d.Name].Waiting < n) {
				all[d.Name] = &Blocked{Resource: h.Resource, Event: h.ID, Waiting: n}
			}
		}
	}
	return all, nil
}
