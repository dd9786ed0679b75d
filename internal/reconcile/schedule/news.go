package schedule

import (
	"context"
	"iter"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
)

// News is what a run found that was not told before, by this process, or by another one that went past it.
type News struct {
	// Missing never arrived. Those that came while the run lasted are not among them.
	Missing int
	// Redelivered, Stored and Failed are what was done, also about such as were told before.
	Redelivered, Stored, Failed int
	// Report is all that the run found.
	Report *reconcile.Report

	events  []reconcile.Missing
	tried   told
	undated bool // more of them than before
}

// Recovered counts what was stored, and what the sender was asked to send again.
func (n *News) Recovered() int { return n.Redelivered + n.Stored }

func (n *News) any() bool { return n.Missing+n.Recovered()+n.Failed > 0 }

// told has what was done last about each event that was told and may be found again.
type told map[string]tried

// tried is what was done last about an event, when that was, since when it is tried, and when the sender was first asked for it; zero: it
// was not. All of it goes by the process's own clock, which nobody sets.
type tried struct {
	outcome          reconcile.Outcome
	at, since, asked time.Time
}

// next is what an outcome makes of it.
func (t tried) next(o reconcile.Outcome) tried {
	now := time.Now()
	if !isOpen(t.outcome) {
		t.since = now
	}
	if o == reconcile.Redelivered && t.asked.IsZero() {
		t.asked = now
	}
	t.outcome, t.at = o, now
	return t
}

// isOpen reports whether an event of which that was done is looked at again, because it is not on record yet.
func isOpen(o reconcile.Outcome) bool {
	return o == reconcile.Failed || o == reconcile.Redelivered || o == reconcile.Elsewhere
}

// isPromised reports whether the sender said that it would send an event again that has no key: nobody can say more of it.
func isPromised(m *reconcile.Missing) bool { return m.Key == "" && m.Outcome == reconcile.Redelivered }

// asked returns what tells of which events of a source the sender was asked to send again, as far as this process remembers.
func (s *Schedule) asked(source string) func(reconcile.Missing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.told[source] // replaced after each run, and never changed
	return func(m reconcile.Missing) bool { return before[idOf(&m)].outcome == reconcile.Redelivered }
}

// givenUp returns what tells for which events of a source the sender was asked for [insist], by this process, or for [oldest] by
// processes that never live for so long. It goes by the first time that the sender took the request, whatever the list says: some
// show what was sent again as made then, so that it never grows old, and would be asked for without end. Whoever asks the sender for
// nothing gets nil.
func (s *Schedule) givenUp(ctx context.Context, src *Source) func(reconcile.Missing) bool {
	if !src.Redeliver {
		return nil
	}
	now := s.opt.Now()
	ask, cancel := context.WithTimeout(journal.Deciding(ctx), askTime)
	defer cancel()
	all, err := s.missing(ask, src.Name, now)
	if err != nil { // they are asked for once more
		s.opt.Logger.Debug("reconcile: it could not be read since when a sender is asked for what is missing", "source", src.Name, "error", err)
	}
	long := map[string]bool{}
	for i := range all {
		if m := &all[i]; !m.Asked.IsZero() && m.Asked.Before(now.Add(-oldest)) {
			long[m.Key] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.told[src.Name] // replaced after each run, and never changed
	return func(m reconcile.Missing) bool {
		asked := before[idOf(&m)].asked
		return long[m.Key] || !asked.IsZero() && time.Since(asked) >= insist
	}
}

// idOf tells an event from all others of its source.
func idOf(m *reconcile.Missing) string {
	if m.Key == "" {
		return "\x00" + m.Entry
	}
	return m.Key
}

// unnamed is under what it is kept since when events are tried that reports do not name.
const unnamed = ""

// givenUp reports whether an event has been tried for so long that nobody waits for it any more. It goes by the first try and not by
// when the event was made: after a long outage the first run would give up what fails in a bad moment. Another process begins anew.
func (n *News) givenUp(id string) bool {
	t, is := n.tried[id]
	return is && time.Since(t.since) >= insist
}

// openUnnamed counts the events that are looked at again and that the report does not name.
func openUnnamed(r *reconcile.Report) int {
	open := r.Failed + r.Redelivered + r.Elsewhere
	for m := range listed(r) {
		if isOpen(m.Outcome) {
			open--
		}
	}
	return open
}

// listed are the events that a report names, with a key and without.
func listed(r *reconcile.Report) iter.Seq[*reconcile.Missing] {
	return func(yield func(*reconcile.Missing) bool) {
		for _, all := range [][]reconcile.Missing{r.Events, r.Undelivered} {
			for i := range all {
				if !yield(&all[i]) {
					return
				}
			}
		}
	}
}

// news tells what is new in a report from what is found again: runs overlap, one that failed is repeated, and what cannot be
// recovered is tried again. Each event counts once as missing, and once for each outcome that is another than before.
func (s *Schedule) news(src *Source, mark journal.Mark, r *reconcile.Report, err error) News {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.told[src.Name], told{}
	found := News{Report: r}
	redelivered, stored, failed := 0, 0, 0                          // of those that the report names
	through := earlier(mark.Through, mark.Last.Ended.Add(-src.Lag)) // what was told of: the mark of a source that begins is ahead
	for m := range listed(r) {
		switch m.Outcome {
		case reconcile.Arrived:
			continue
		case reconcile.Redelivered:
			redelivered++
		case reconcile.Stored:
			stored++
		case reconcile.Failed:
			failed++
		}
		id := idOf(m)
		was, again := before[id]
		now[id] = was.next(m.Outcome)
		past := !m.Time.IsZero() && m.Time.Before(through)
		if !again && (!past || m.Outcome == reconcile.Stored) { // else whoever moved the mark told of it
			found.Missing++
			found.events = append(found.events, *m)
		}
		if again && was.outcome == m.Outcome {
			continue
		}
		switch m.Outcome {
		case reconcile.Redelivered:
			found.Redelivered++
		case reconcile.Stored:
			found.Stored++
		case reconcile.Failed:
			found.Failed++
		}
	}
	if openUnnamed(r) > 0 {
		now[unnamed] = tried{}.next(reconcile.Failed)
		if was, again := before[unnamed]; again {
			now[unnamed] = was
		}
	}
	// Of those beyond what a report names only the numbers are known.
	found.Missing += r.Missing - len(r.Events)
	found.Redelivered += max(0, r.Redelivered-redelivered)
	found.Stored += max(0, r.Stored-stored)
	found.Failed += max(0, r.Failed-failed)
	if err != nil && len(before) <= reconcile.MaxMissing+1 { // it did not come to all of them; one stands for those without names
		for id, was := range before {
			if _, is := now[id]; !is {
				now[id] = was
			}
		}
	}
	// What the sender was asked for is not listed while its new entry is too young to be missing.
	for id, was := range before {
		if _, is := now[id]; !is && !was.asked.IsZero() && time.Since(was.at) < src.Lag+src.Every && len(now) <= reconcile.MaxMissing {
			now[id] = was
		}
	}
	if found.undated = r.Undated > s.undated[src.Name]; found.undated || err == nil {
		s.undated[src.Name] = r.Undated
	}
	s.told[src.Name], found.tried = now, now
	return found
}
