// Package schedule compares sources with their senders' lists again and again: one process at a time over all gateways on a
// store, none of them elected. How far a source was compared, and who is at it, is a mark in the store under a lease, so that it
// outlives processes; nothing in the store is held open while a sender is asked.
package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/provider/spec"
)

// Times that nobody has to choose.
const (
	lookEvery = time.Second      // between two looks for sources that are due
	leaseTime = time.Minute      // after which another process goes on, if this one is gone
	askTime   = 5 * time.Second  // for one word with the store
	overlap   = 10 * time.Minute // that is read again, because lists show some events late
	maxLines  = 20               // events of one run that the log names
)

// Source is a source that is compared again and again.
type Source struct {
	Name     string
	Provider *spec.Provider
	// With, Token and Types are as in [reconcile.Options].
	With  map[string]string
	Token string
	Types []string
	// Every is the time from the end of one run to the beginning of the next; at least a second.
	Every time.Duration
	// Lag is how old an event is before it can be missing.
	Lag time.Duration
	// Remembered is how long the keys of the source are remembered. Zero: for ever. No event that is older is asked about: it
	// would be missing whether it came or not.
	Remembered time.Duration
	// Redeliver and Ingest are as in [reconcile.Options].
	Redeliver bool
	Ingest    func(context.Context, hookonce.Event) (stored bool, err error)
	// Refused is as in [reconcile.Options].
	Refused func(context.Context, []string) (map[string]string, error)
}

// Marks is what a [Schedule] needs of a store. See [journal.Reconciler].
type Marks interface {
	TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m journal.Mark, taken bool, err error)
	AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (held bool, err error)
	ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (held bool, err error)
	Marks(ctx context.Context) ([]journal.Mark, error)
}

// Options are those of a [Schedule]. Store, Ledger, Sources, Now and Logger are required.
type Options struct {
	Store  Marks
	Ledger reconcile.Ledger
	// Sources returns those that are to be compared now. It is asked every second.
	Sources func() []Source
	// Did is told of a run that recovered something, for the audit log. Nil: nobody is.
	Did func(ctx context.Context, source string, r *reconcile.Report)
	// Transport carries the requests. Default: [http.DefaultTransport].
	Transport http.RoundTripper
	Now       func() time.Time
	Logger    *slog.Logger
	// Registerer takes the metrics. Nil: there are none.
	Registerer prometheus.Registerer
}

// Schedule compares sources until it is told to stop. Its methods are safe for concurrent use.
type Schedule struct {
	opt     Options
	holder  string
	metrics *metrics

	mu   sync.Mutex
	next map[string]time.Time // when a source is looked at again
	busy map[string]bool
}

// New returns a schedule that has not begun.
func New(o Options) *Schedule {
	return &Schedule{opt: o, holder: rand.Text(), metrics: newMetrics(o.Registerer), next: map[string]time.Time{}, busy: map[string]bool{}}
}

// Run compares until ctx ends, and returns when nothing is under way any more.
func (s *Schedule) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for _, src := range s.due(ctx) {
			under.Go(func() {
				defer s.done(src.Name)
				s.compare(ctx, src)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due returns the sources that nobody compared within their period, as far as is known, and marks them as busy.
func (s *Schedule) due(ctx context.Context) (due []Source) {
	now := s.opt.Now()
	s.mu.Lock()
	for _, src := range s.opt.Sources() {
		if !s.busy[src.Name] && !now.Before(s.next[src.Name]) {
			due = append(due, src)
		}
	}
	s.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	ask, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	marks, err := s.opt.Store.Marks(ask)
	if err != nil {
		s.opt.Logger.Debug("reconcile: it could not be read how far sources were compared; it is tried again", "error", err)
		return nil
	}
	by := map[string]journal.Mark{}
	for _, m := range marks {
		by[m.Source] = m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := due[:0]
	for _, src := range due {
		m := by[src.Name]
		s.metrics.standing(src.Name, m)
		switch again := m.Last.Ended.Add(src.Every); {
		case now.Before(again):
			s.next[src.Name] = again
		case m.Holder != "" && now.Before(m.Lease):
			s.next[src.Name] = m.Lease
		default:
			s.busy[src.Name] = true
			left = append(left, src)
		}
	}
	return left
}

func (s *Schedule) done(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, source)
}

// later puts a source off.
func (s *Schedule) later(source string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[source] = until
}

// Why a run ended that was not through.
var (
	errTaken   = errors.New("another gateway has taken over")
	errUnheard = errors.New("the store did not answer for so long that another gateway may have taken over")
)

// compare does one run, if nobody else does.
func (s *Schedule) compare(ctx context.Context, src Source) {
	now := s.opt.Now()
	s.later(src.Name, now.Add(src.Every)) // whatever comes of it
	ask, cancel := context.WithTimeout(ctx, askTime)
	mark, taken, err := s.opt.Store.TakeMark(ask, src.Name, s.holder, now, now.Add(leaseTime))
	cancel()
	switch {
	case err != nil:
		s.opt.Logger.Warn("reconcile: a source could not be compared, because the store does not answer", "source", src.Name, "error", err)
		return
	case !taken:
		return
	case now.Before(mark.Last.Ended.Add(src.Every)): // somebody was faster
		s.release(ctx, src.Name, mark.Token, mark.Last)
		return
	case mark.Through.IsZero():
		s.begin(ctx, src, mark, now)
		return
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var holding sync.WaitGroup
	holding.Go(func() { s.hold(run, stop, src.Name, mark.Token) })
	since, late := s.since(src, mark, now)
	report, err := reconcile.Run(run, reconcile.Options{
		Source: src.Name, Provider: src.Provider, With: src.With, Token: src.Token, Types: src.Types,
		Ledger: s.opt.Ledger, Since: since, Lag: cmp.Or(src.Lag, -1), Refused: src.Refused,
		Redeliver: src.Redeliver, Ingest: src.Ingest, Now: s.opt.Now, Transport: s.opt.Transport, Log: s.opt.Logger,
	})
	lost := context.Cause(run)
	stop(nil)
	holding.Wait()
	if report == nil {
		report = &reconcile.Report{}
	}
	if lost != nil && err != nil {
		err = lost
	}
	s.tell(ctx, src, mark, report, late || report.Cut, err)
	if errors.Is(err, errTaken) {
		return
	}
	s.record(ctx, src, mark, report, err)
}

// begin marks the beginning of a source that was never compared. What was before is not asked about: the source may not have
// existed then.
func (s *Schedule) begin(ctx context.Context, src Source, mark journal.Mark, now time.Time) {
	if s.advance(ctx, src.Name, mark.Token, journal.MarkAdvance{Through: now, Lease: now.Add(leaseTime)}) {
		s.opt.Logger.Info("reconcile: a source is compared with its sender's list from now on; what was before, hookonce reconcile finds", "source", src.Name)
	}
	s.release(ctx, src.Name, mark.Token, journal.MarkResult{Ended: now})
}

// since is where a run begins: a little before where the last one ended, and not before keys are remembered. It reports whether
// something was not compared because of that.
func (s *Schedule) since(src Source, mark journal.Mark, now time.Time) (since time.Time, late bool) {
	since = mark.Through.Add(-max(overlap, src.Lag))
	if src.Remembered == 0 {
		return since, false
	}
	if edge := now.Add(-src.Remembered); since.Before(edge) {
		return edge, mark.Through.Before(edge)
	}
	return since, false
}

// hold keeps the lease until ctx ends, and ends it if the mark is somebody else's.
func (s *Schedule) hold(ctx context.Context, stop context.CancelCauseFunc, source string, token int64) {
	tick := time.NewTicker(leaseTime / 4)
	defer tick.Stop()
	until := s.opt.Now().Add(leaseTime)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lease := s.opt.Now().Add(leaseTime)
		ask, cancel := context.WithTimeout(ctx, askTime)
		held, err := s.opt.Store.AdvanceMark(ask, source, token, journal.MarkAdvance{Lease: lease})
		cancel()
		switch {
		case err == nil && held:
			until = lease
		case err == nil:
			stop(errTaken)
		case !s.opt.Now().Before(until):
			stop(errUnheard)
		}
	}
}

// record moves the mark as far as all was compared and done, and gives it back. A run that was cut off leaves no trace, so that
// another process begins at once.
func (s *Schedule) record(ctx context.Context, src Source, mark journal.Mark, r *reconcile.Report, err error) {
	now := s.opt.Now()
	result := journal.MarkResult{Ended: now, Listed: int64(r.Listed), Missing: int64(fresh(r, mark)), Recovered: int64(r.Redelivered + r.Stored)}
	switch {
	case ctx.Err() != nil:
		result = mark.Last
	case err != nil:
		result.Error = err.Error()
	default:
		through := settled(r)
		if s.advance(ctx, src.Name, mark.Token, journal.MarkAdvance{Through: through, Lease: now.Add(leaseTime)}) {
			mark.Through = through
		}
	}
	mark.Last = result
	if s.release(ctx, src.Name, mark.Token, result) {
		s.metrics.standing(src.Name, mark)
	}
}

// settled is the time before which all was compared, and done what had to be.
func settled(r *reconcile.Report) time.Time {
	through := r.Settled
	for _, m := range r.Events {
		if m.Outcome == reconcile.Failed && !m.Time.IsZero() && m.Time.Before(through) {
			through = m.Time
		}
	}
	return through
}

// fresh counts the missing events that no run before has counted: what was compared is read again for a while.
func fresh(r *reconcile.Report, mark journal.Mark) (n int) {
	for _, m := range r.Events {
		if isFresh(&m, mark) {
			n++
		}
	}
	return n + r.Missing - len(r.Events)
}

func isFresh(m *reconcile.Missing, mark journal.Mark) bool {
	return m.Outcome == reconcile.Stored || m.Time.IsZero() || !m.Time.Before(mark.Through)
}

// advance and release end what a run did, also if ctx ended. They report whether it is on record.
func (s *Schedule) advance(ctx context.Context, source string, token int64, a journal.MarkAdvance) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	held, err := s.opt.Store.AdvanceMark(ctx, source, token, a)
	return s.noted(source, held, err)
}

func (s *Schedule) release(ctx context.Context, source string, token int64, r journal.MarkResult) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	held, err := s.opt.Store.ReleaseMark(ctx, source, token, r)
	return s.noted(source, held, err)
}

func (s *Schedule) noted(source string, held bool, err error) bool {
	if err != nil {
		s.opt.Logger.Warn("reconcile: it could not be recorded how far a source was compared, so a part of it is compared again", "source", source, "error", err)
	}
	return err == nil && held
}

// tell writes what a run found, and counts it.
func (s *Schedule) tell(ctx context.Context, src Source, mark journal.Mark, r *reconcile.Report, late bool, err error) {
	log := s.opt.Logger
	if late {
		log.Warn("reconcile: a part of the time since the last run cannot be compared any more", "source", src.Name, "compared_through", mark.Through, "begins", r.Since)
	}
	lines, missing := 0, fresh(r, mark)
	for i := range r.Events {
		m := &r.Events[i]
		if !isFresh(m, mark) {
			continue
		}
		if lines++; lines > maxLines {
			break
		}
		log.Warn("reconcile: an event never arrived", "source", src.Name, "key", m.Key, "type", m.Type, "time", m.Time,
			"refused", m.Refused, "outcome", string(cmp.Or(m.Outcome, "reported")), "why", m.Why)
	}
	recovered := r.Redelivered + r.Stored
	s.metrics.run(src.Name, missing, recovered, r.Failed, err)
	if missing > 0 || recovered > 0 || r.Failed > 0 {
		log.Warn("reconcile: events never arrived", "source", src.Name, "listed", r.Listed, "missing", missing, "refused", r.Refused,
			"redelivered", r.Redelivered, "stored", r.Stored, "failed", r.Failed)
	}
	if recovered > 0 && s.opt.Did != nil {
		s.opt.Did(context.WithoutCancel(ctx), src.Name, r)
	}
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errTaken):
		log.Info("reconcile: another gateway goes on with a source", "source", src.Name)
	default:
		log.Warn("reconcile: a source could not be compared; it is tried again", "source", src.Name, "error", fmt.Sprint(err), "next", s.opt.Now().Add(src.Every))
	}
}
