package schedule

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// observed is the result that says of a mark that the source was observed since it ended. It stands in the store, so that it
// does not matter which process compares the source next, or what became of the one that observed.
const observed = "requests go past the gateway (mode: observe), which has no record of them"

// wasObserved reports whether a source was observed since it was last compared.
func wasObserved(m journal.Mark) bool { return m.Last.Error == observed }

// observedFrom is since when what was made may have gone past the gateway: runs show some events late.
func observedFrom(m journal.Mark) time.Time { return m.Through.Add(-overlap) }

// ObservedSince returns since when what a sender made may have gone past the gateway, if the source with that mark is observed or was
// and is not compared again yet.
func ObservedSince(m journal.Mark) (from time.Time, is bool) { return observedFrom(m), wasObserved(m) }

// mustKeep reports whether the mark of a source that is observed has to be taken, or taken again, so that nobody compares it. Where
// there is none, whoever makes it begins with that moment, and it is seen at the next look.
func (s *Schedule) mustKeep(m journal.Mark, now time.Time) bool {
	switch {
	case m.Through.IsZero():
		return false
	case m.Holder == s.holder:
		return !wasObserved(m) || m.Lease.Sub(now) < leaseTime/2
	default: // several gateways may observe it: one of them has the mark
		return !m.Held(s.holder, now, now.Add(leaseTime))
	}
}

// Observe looks at once for sources that are observed, so that it is on record when it returns, if the store answers and nobody is
// comparing them at this moment: an observation that is over before the next look counts as well.
func (s *Schedule) Observe(ctx context.Context) {
	is := map[string]bool{}
	for _, src := range s.opt.Sources() {
		if src.Observed {
			is[src.Name] = true
		}
	}
	if len(is) == 0 {
		return
	}
	ask, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	marks, err := s.opt.Store.Marks(ask)
	if err != nil {
		s.unrecorded(err)
	}
	for _, m := range marks {
		if now := s.opt.Now(); is[m.Source] && s.mustKeep(m, now) {
			s.keep(ctx, m.Source, now)
		}
	}
}

func (s *Schedule) unrecorded(err error) {
	s.opt.Logger.Warn("reconcile: it could not be recorded that sources are observed; it is tried again", "error", err)
}

// keep takes the mark of a source that is observed. That it is observed is on record before the mark is held, because nothing is
// after a kill.
func (s *Schedule) keep(ctx context.Context, source string, now time.Time) {
	mark, taken := s.takeObserved(ctx, source, now)
	if taken && !wasObserved(mark) {
		if !s.release(ctx, source, mark.Token, journal.MarkResult{Ended: now, Error: observed}) {
			return
		}
		s.opt.Logger.Info("reconcile: a source is observed, so that it is not compared with its sender's list any more", "source", source, "compared_through", mark.Through)
		mark, taken = s.takeObserved(ctx, source, now)
	}
	if !taken {
		return
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.kept[source] = mark
	}
	s.mu.Unlock()
	if ended {
		s.release(ctx, source, mark.Token, mark.Last)
	}
}

func (s *Schedule) takeObserved(ctx context.Context, source string, now time.Time) (mark journal.Mark, taken bool) {
	ask, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	mark, taken, err := s.opt.Store.TakeMark(ask, source, s.holder, now, now.Add(leaseTime))
	if err != nil {
		s.unrecorded(err)
	}
	return mark, taken && err == nil
}

// giveBack gives the marks back of sources that this process observed, so that the next one need not wait. A reload may still be
// looking for such sources: what it takes is given back as well.
func (s *Schedule) giveBack(ctx context.Context) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	for source, mark := range s.kept {
		s.release(ctx, source, mark.Token, mark.Last)
	}
}

// beginAnew goes on with a source that was observed. What was made until now may have gone past the gateway, and would be taken for
// lost: so it is passed over, which is on record before.
func (s *Schedule) beginAnew(ctx context.Context, src Source, mark journal.Mark, now time.Time) {
	until := now.Add(ahead)
	from := earlier(observedFrom(mark), until)
	if err := s.passOver(ctx, src.Name, from, until, Observed); err != nil {
		s.opt.Logger.Warn("reconcile: a source that was observed is not compared yet", "source", src.Name, "error", err)
		s.release(ctx, src.Name, mark.Token, mark.Last)
		return
	}
	if s.beginAt(ctx, src.Name, mark, until, now) {
		s.opt.Logger.Info("reconcile: a source that was observed is compared again", "source", src.Name)
	}
}
