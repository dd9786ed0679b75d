// Package schedule compares sources with their senders' lists again and again: one process at a time over all gateways on a
// store, none of them elected. How far a source was compared, and who is at it, is a mark in the store under a lease, so that it
// outlives processes; nothing in the store is held open while a sender is asked.
package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
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
	lookEvery = time.Second        // between two looks for sources that are due
	leaseTime = time.Minute        // after which another process goes on, if this one is gone
	askTime   = 5 * time.Second    // for one word with the store
	overlap   = 10 * time.Minute   // that is read again, because lists show some events late
	tryAgain  = time.Minute        // after a failure, at least
	ahead     = time.Minute        // that a sender's clock may be, so that its list has what was made before some event as made after it
	insist    = 24 * time.Hour     // for so long what could not be recovered, or was asked for and has not come, is tried again
	oldest    = 7 * 24 * time.Hour // and no longer than until it is as old as this
	maxLines  = 20                 // events of one run that the log names

	unsaidWindow = 30 * 24 * time.Hour // for which what is missing is remembered, where neither the sender nor the journal forgets
)

// What a run found is on record two words with the store after its end. This does not compile if that takes longer than those allow
// for who dismiss what is missing.
const _ = uint(journal.RecordedWithin - 2*askTime)

// Source is a source that is compared again and again.
type Source struct {
	Name     string
	Provider *spec.Provider
	// With, Token and Types are as in [reconcile.Options].
	With  map[string]string
	Token string
	Types []string
	// Every is the time from the end of one run to the beginning of the next; at least a second. After a run that failed it is
	// less, and grows with the time since one did not.
	Every time.Duration
	// Lag is how old an event is before it can be missing.
	Lag time.Duration
	// Remembered is how long the keys of the source are remembered. Zero: for ever. No event that is older is asked about: it
	// would be missing whether it came or not.
	Remembered time.Duration
	// Redeliver and Ingest are as in [reconcile.Options].
	Redeliver bool
	Ingest    func(context.Context, hookonce.Event) (stored bool, err error)
	// Refused and Hold are as in [reconcile.Options].
	Refused func(context.Context, []string) (map[string]string, error)
	Hold    func(context.Context, []reconcile.Missing) (map[string]string, error)

	// Observed says that requests of the source go past the gateway, which has no record of them. It is not compared then, by no
	// gateway on the store, and what was made until that is over never will be. Nothing else but the name counts.
	Observed bool
}

// same reports whether a run for one is as good as one for the other. Of functions only that there is one can be told; Every counts
// from the end of a run on.
func (src *Source) same(other *Source) bool {
	return src.Name == other.Name && src.Observed == other.Observed && src.Provider == other.Provider && src.Token == other.Token &&
		maps.Equal(src.With, other.With) && slices.Equal(src.Types, other.Types) && src.Lag == other.Lag && src.Remembered == other.Remembered &&
		src.Redeliver == other.Redeliver && (src.Ingest == nil) == (other.Ingest == nil)
}

// Why says why a part of the time is not compared.
type Why string

// The reasons.
const (
	// Observed: what was made then may have gone past the gateway, which would take it for lost.
	Observed Why = "requests went past the gateway (mode: observe)"
	// Forgotten: nobody looked for so long that it cannot be told any more what of it came.
	Forgotten Why = "the sender's list, or what is remembered of keys, does not go back so far any more"
)

// Marks is what a [Schedule] needs of a store. See [journal.Reconciler].
type Marks interface {
	TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m journal.Mark, taken bool, err error)
	AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (held bool, err error)
	ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (held bool, err error)
	Marks(ctx context.Context) ([]journal.Mark, error)
	// Missing is that of [journal.MissingKeeper].
	Missing(ctx context.Context, q journal.MissingQuery) ([]journal.MissingEvent, error)
}

// Options are those of a [Schedule]. Store, Ledger, Sources, Now and Logger are required.
type Options struct {
	Store  Marks
	Ledger reconcile.Ledger
	// Sources returns those that are to be compared now. It is asked every second.
	Sources func() []Source
	// Cells says that the ledger knows of other cells too, so that the store does not see of all that is missing whether it is
	// over: each run asks the ledger for it again.
	Cells bool
	// Found is told of a run that found, recovered or could not recover something. Nil: nobody is.
	Found func(ctx context.Context, source string, n News)
	// Skipped puts on record that of a source nothing is compared that was made between two times, and why. What it could not put on
	// record is not passed over yet. Nil: it is only logged.
	Skipped func(ctx context.Context, source string, from, until time.Time, why Why) error
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

	mu      sync.Mutex
	next    map[string]time.Time // when a source is looked at again, by the process's own clock: nobody sets that
	busy    map[string]job
	told    map[string]told         // by source
	undated map[string]int          // that were told of, by source
	kept    map[string]journal.Mark // of sources that are observed, as this process took them last
	ended   bool                    // kept was given back, and nothing is kept any more
}

// job is a run that is under way.
type job struct {
	of   Source
	stop context.CancelCauseFunc
}

// New returns a schedule that has not begun.
func New(o Options) *Schedule {
	return &Schedule{opt: o, holder: rand.Text(), metrics: newMetrics(o.Registerer), next: map[string]time.Time{}, busy: map[string]job{}, told: map[string]told{}, undated: map[string]int{}, kept: map[string]journal.Mark{}}
}

// Run compares until ctx ends, and returns when nothing is under way any more.
func (s *Schedule) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer func() {
		under.Wait()
		s.giveBack(ctx)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for _, src := range s.due(ctx) {
			run, stop := context.WithCancelCause(ctx)
			s.mu.Lock()
			s.busy[src.Name] = job{src, stop}
			s.mu.Unlock()
			under.Go(func() {
				defer s.done(run, src.Name)
				s.compare(run, src)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due returns the sources that nobody compared within their period, as far as is known. It ends runs of sources that are configured
// in another way by now: some last for hours, with a token that was withdrawn or for an action that nobody wants any more.
func (s *Schedule) due(ctx context.Context) (due []Source) {
	now, all := s.opt.Now(), s.opt.Sources()
	s.mu.Lock()
	for _, j := range s.busy {
		if !slices.ContainsFunc(all, func(src Source) bool { return src.same(&j.of) }) {
			j.stop(errAnew)
		}
	}
	for _, src := range all {
		if !src.Observed {
			s.metrics.begin(src.Name)
		}
		if _, busy := s.busy[src.Name]; !busy && (src.Observed || !time.Now().Before(s.next[src.Name])) {
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
		if src.Observed {
			if s.mustKeep(m, now) {
				left = append(left, src)
			}
			continue
		}
		s.metrics.standing(src.Name, m)
		soon := func(at time.Time) time.Time { // what is configured, or who is at it, may be another by then
			return time.Now().Add(min(at.Sub(now), tryAgain))
		}
		switch again := src.again(m, now); {
		case now.Before(again):
			s.next[src.Name] = soon(again)
		case m.Held(s.holder, now, now.Add(leaseTime)):
			s.next[src.Name] = soon(m.Lease)
		default:
			left = append(left, src)
		}
	}
	return left
}

func (s *Schedule) done(run context.Context, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(context.Cause(run), errAnew) {
		delete(s.next, source)
	}
	s.busy[source].stop(nil)
	delete(s.busy, source)
}

// later puts a source off.
func (s *Schedule) later(source string, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[source] = time.Now().Add(wait)
}

// again is when a source is due by what its mark says. After a failure it is sooner than after success, so that a sender's bad
// minute does not cost a period, and each failure makes the wait longer: it is a share of the time that is not compared. Nothing is
// compared before runs begin. A clock that was ahead puts nothing off for as long as it was.
func (src *Source) again(m journal.Mark, now time.Time) time.Time {
	switch {
	case wasObserved(m):
		return time.Time{} // what is made from then on is compared again
	case beyond(m.Last.Ended, now), beyond(m.Through, now):
		return time.Time{}
	}
	wait := src.Every
	if m.Last.Error != "" {
		wait = min(wait, max(tryAgain, m.Last.Ended.Sub(m.Through)/8))
	}
	again := m.Last.Ended.Add(wait)
	if begins := m.Through.Add(-overlap); begins.After(again) {
		return begins
	}
	return again
}

// beyond reports whether a time is so far ahead that a clock that was wrong gave it, then or now.
func beyond(at, now time.Time) bool { return at.After(now.Add(journal.MuchAhead)) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
