package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
)

// Why a run ended that was not through.
var (
	errTaken   = errors.New("another gateway has taken over")
	errClock   = errors.New("the mark is of a time to come, and the sender's clock does not confirm ours: see that the clock is right")
	errUnheard = errors.New("the store did not answer for so long that another gateway may have taken over")
	errAnew    = errors.New("it is configured in another way by now")
)

// compare does one run, if nobody else does.
func (s *Schedule) compare(ctx context.Context, src Source) {
	now := s.opt.Now()
	if src.Observed {
		s.keep(ctx, src.Name, now)
		return
	}
	s.later(src.Name, min(src.Every, tryAgain)) // whatever comes of it: the mark says more then
	ask, cancel := context.WithTimeout(ctx, askTime)
	mark, taken, err := s.opt.Store.TakeMark(ask, src.Name, s.holder, now, now.Add(leaseTime))
	cancel()
	switch {
	case err != nil:
		s.opt.Logger.Warn("reconcile: a source could not be compared, because the store does not answer", "source", src.Name, "error", err)
		return
	case !taken:
		return
	case now.Before(src.again(mark, now)): // somebody was faster
		s.release(ctx, src.Name, mark.Token, mark.Last)
		return
	case mark.Through.IsZero():
		s.begin(ctx, src, mark, now)
		return
	case wasObserved(mark):
		s.beginAnew(ctx, src, mark, now)
		return
	case beyond(mark.Through, now):
		s.goBack(ctx, src, mark, now)
		return
	}
	since, late := s.since(src, mark, now)
	report, err := s.run(ctx, src, mark, since)
	if refused, _ := errors.AsType[*reconcile.AnswerError](err); refused != nil && refused.After > tryAgain {
		s.later(src.Name, min(refused.After, insist)) // when the sender said
	}
	cut := report.Cut && mark.Through.Before(report.Since)
	// Our clock counts what lies in the list as too old for it. Where the mark does not, that is no matter of clocks, but a clock
	// that is far ahead has most of the list passed over as well.
	if cut && err == nil && (report.Ahead >= journal.MuchAhead || !mark.Through.Before(report.Since.Add(-report.Ahead))) {
		err = fmt.Errorf("our clock is %v ahead of the sender's, so that a part of its list counts as forgotten: set it", report.Ahead.Round(time.Minute))
	}
	if (late || cut) && err == nil {
		err = s.passOver(ctx, src.Name, mark.Through, report.Since, Forgotten)
	}
	found := s.news(&src, mark, report, err)
	s.tell(ctx, &src, found, err)
	s.record(ctx, &src, mark, found, err)
}

// passOver puts on record what no run looks for, before the mark passes it.
func (s *Schedule) passOver(ctx context.Context, source string, from, until time.Time, why Why) error {
	if s.opt.Skipped != nil {
		if err := s.opt.Skipped(ctx, source, from, until, why); err != nil {
			return fmt.Errorf("what is passed over could not be put on record: %w", err)
		}
	}
	s.opt.Logger.Warn("reconcile: a part of the time is not compared", "source", source, "from", from, "until", until, "why", string(why))
	return nil
}

// run reads the list from a time on, and holds the mark meanwhile.
func (s *Schedule) run(ctx context.Context, src Source, mark journal.Mark, since time.Time) (*reconcile.Report, error) {
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var holding sync.WaitGroup
	holding.Go(func() { hold(run, stop, s.opt.Store, s.opt.Now, src.Name, mark.Token) })
	report, err := reconcile.Run(run, reconcile.Options{
		Source: src.Name, Provider: src.Provider, With: src.With, Token: src.Token, Types: src.Types,
		Ledger: s.opt.Ledger, Since: since, Remembered: src.Remembered, Lag: cmp.Or(src.Lag, -1), Refused: src.Refused, Hold: src.Hold, OnlyDated: true,
		Asked: s.asked(src.Name), GivenUp: s.givenUp(ctx, &src), Redeliver: src.Redeliver, Ingest: src.Ingest, Now: s.opt.Now, Transport: s.opt.Transport, Log: s.opt.Logger,
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
	return report, err
}

// goBack begins anew with a source whose mark is of a time to come, because it was begun by a clock that was ahead: nothing would be
// compared until then. If it is our clock that is wrong, which the sender's tells, the mark is right: what was made before the source
// began is somebody else's, and would be done twice.
func (s *Schedule) goBack(ctx context.Context, src Source, mark journal.Mark, now time.Time) {
	only := src
	only.Redeliver, only.Ingest = false, nil
	report, err := s.run(ctx, only, mark, now)
	switch {
	case ctx.Err() != nil:
		s.release(ctx, src.Name, mark.Token, mark.Last)
		return
	case err != nil:
		err = fmt.Errorf("the mark is of a time to come, and the sender could not be asked what time it is: %w", err)
	case report.Answered.IsZero() || beyond(now, report.Answered) || beyond(report.Answered, now):
		err = errClock
		s.later(src.Name, journal.MuchAhead)
	case s.advance(ctx, src.Name, mark.Token, journal.MarkAdvance{Through: now.Add(overlap), Back: true, Lease: now.Add(leaseTime)}):
		s.opt.Logger.Warn("reconcile: a clock was ahead when a source was compared; it is compared with its sender's list from now on, and what was made before, hookonce reconcile finds",
			"source", src.Name, "compared_through", mark.Through)
		s.later(src.Name, 0)
	}
	result := journal.MarkResult{Ended: now}
	if err != nil {
		s.opt.Logger.Warn("reconcile: a source is not compared; it is tried again", "source", src.Name, "compared_through", mark.Through, "sender", report.Answered, "error", err)
		result.Error = err.Error()
	}
	s.release(ctx, src.Name, mark.Token, result)
}

// begin marks the beginning of a source that was never compared. What was made before is never asked about, because the source may
// not have existed then, or not been recorded, and somebody else may have done the work: so the mark is as far ahead as runs reach back.
func (s *Schedule) begin(ctx context.Context, src Source, mark journal.Mark, now time.Time) {
	if s.beginAt(ctx, src.Name, mark, now.Add(ahead), now) {
		s.opt.Logger.Info("reconcile: a source is compared with its sender's list from now on; what was before, hookonce reconcile finds", "source", src.Name)
	}
}

// beginAt has the mark of a source lie where nothing that was made before a time is asked about, and gives it back. It reports whether
// that is on record.
func (s *Schedule) beginAt(ctx context.Context, source string, mark journal.Mark, at, now time.Time) bool {
	last := mark.Last // of an observation, which is on record until the mark has passed it
	begun := s.advance(ctx, source, mark.Token, journal.MarkAdvance{Through: at.Add(overlap), Lease: now.Add(leaseTime)})
	if begun {
		last = journal.MarkResult{Ended: now}
	}
	s.release(ctx, source, mark.Token, last)
	return begun
}

// since is where a run begins: a little before where the last one ended, and not before keys are remembered, nor where they may be
// forgotten while it lasts. It reports whether something is not compared because of that.
func (s *Schedule) since(src Source, mark journal.Mark, now time.Time) (since time.Time, late bool) {
	since = mark.Through.Add(-overlap)
	if src.Remembered == 0 {
		return since, false
	}
	if edge := now.Add(-src.Remembered + min(overlap, src.Remembered/8)); since.Before(edge) {
		return edge, mark.Through.Before(edge)
	}
	return since, false
}

// hold keeps the lease until ctx ends, and ends it if the mark is somebody else's.
func hold(ctx context.Context, stop context.CancelCauseFunc, store Marks, now func() time.Time, source string, token int64) {
	tick := time.NewTicker(leaseTime / 4)
	defer tick.Stop()
	until := now().Add(leaseTime)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lease := now().Add(leaseTime)
		ask, cancel := context.WithTimeout(ctx, askTime)
		held, err := store.AdvanceMark(ask, source, token, journal.MarkAdvance{Lease: lease})
		cancel()
		switch {
		case err == nil && held:
			until = lease
		case err == nil:
			stop(errTaken)
		case !now().Before(until):
			stop(errUnheard)
		}
	}
}

// record moves the mark as far as all was compared and done, and gives it back. A run that was cut off leaves no trace, so that
// another process begins at once. Of a mark that somebody else has taken, the store takes nothing.
func (s *Schedule) record(ctx context.Context, src *Source, mark journal.Mark, found News, err error) {
	now, r := s.opt.Now(), found.Report
	result := journal.MarkResult{Ended: now, Listed: int64(r.Listed), Missing: int64(found.Missing), Recovered: int64(found.Recovered())}
	switch {
	case ctx.Err() != nil:
		result = mark.Last
	default:
		// What is missing is on record before the mark passes it, and also after a run that failed.
		advance := journal.MarkAdvance{Lease: now.Add(leaseTime), Found: finding(src, r, now)}
		s.close(ctx, src.Name, advance.Found)
		if err != nil {
			result.Error = err.Error()
		} else {
			advance.Through = settled(r, found.givenUp)
		}
		switch kept := s.advance(ctx, src.Name, mark.Token, advance); {
		case !kept && err == nil:
			result.Error = "what it found could not be put on record"
		case kept && advance.Through.After(mark.Through):
			mark.Through = advance.Through
		}
	}
	mark.Last = result
	if s.release(ctx, src.Name, mark.Token, result) {
		s.metrics.standing(src.Name, mark)
	}
}

// close finds what was missing and is on record by now where the store does not see it. What nobody can be asked for stands until
// the next run.
func (s *Schedule) close(ctx context.Context, source string, f *journal.Finding) {
	if !s.opt.Cells {
		return
	}
	ctx, cancel := context.WithTimeout(journal.Deciding(ctx), askTime)
	defer cancel()
	all, err := s.missing(ctx, source, f.At)
	if err != nil {
		s.opt.Logger.Warn("reconcile: it could not be read what is missing at a source, so that what another cell has of it is not closed", "source", source, "error", err)
		return
	}
	var keys []string
	for i := range all {
		if all[i].Key != "" {
			keys = append(keys, all[i].Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	known, err := s.opt.Ledger.Known(ctx, source, keys)
	if err != nil {
		s.opt.Logger.Warn("reconcile: no cell could be asked whether it has by now what was missing at a source", "source", source, "error", err)
		return
	}
	f.Over = slices.Sorted(maps.Keys(known))
	f.Missing = slices.DeleteFunc(f.Missing, func(m journal.MissingEvent) bool { _, over := known[m.Key]; return over })
}

// missing returns what stands of a source as missing. What the sender was asked for a moment ago is part of it.
func (s *Schedule) missing(ctx context.Context, source string, now time.Time) ([]journal.MissingEvent, error) {
	return s.opt.Store.Missing(ctx, journal.MissingQuery{Source: source, Now: now.Add(journal.AskedGrace), Limit: journal.MaxMissing})
}

// finding is what is missing after a run: what it could store is on record, and nobody can say more of an event without a key that
// the sender said it would send again. What is another cell's is on record there when that one compares, and could not be seen to
// be over here.
func finding(src *Source, r *reconcile.Report, now time.Time) *journal.Finding {
	keep := cmp.Or(src.Remembered, r.Window, unsaidWindow)
	if r.Window > 0 {
		keep = min(keep, r.Window)
	}
	f := &journal.Finding{At: now, From: r.Since, Settled: r.Settled, Expires: now.Add(keep)}
	named := 0 // of those that are on record by now, or are another cell's
	asked := 0 // of those that the sender was asked for: what the report does not name of them is under way, and looked for again
	for m := range listed(r) {
		switch {
		case m.Outcome == reconcile.Stored || m.Outcome == reconcile.Arrived || m.Outcome == reconcile.Elsewhere:
			named++
			continue
		case isPromised(m):
			asked++
			continue
		}
		one := journal.MissingEvent{Key: m.Key, Entry: m.Entry, Type: m.Type, Happened: m.Time, Found: now, Expires: f.Expires, Why: cmp.Or(m.Why, m.Refused)}
		if !m.Time.IsZero() {
			one.Expires = m.Time.Add(keep)
		}
		if m.Outcome == reconcile.Redelivered {
			one.Asked = now
			asked++
		}
		f.Missing = append(f.Missing, one)
	}
	beyond := r.Missing - len(r.Events) - (r.Stored + r.Arrived + r.Elsewhere - named)
	if r.Since.After(r.Settled.Add(-journal.UnderWay)) { // the mark still waits for all of them
		beyond -= max(0, r.Redelivered-asked)
	}
	f.Beyond = int64(max(0, beyond))
	return f
}

// settled is the time before which all was compared, and done what had to be: an event that could not be recovered, or that the
// sender was asked for and that has a key, is looked at again until it is on record or was tried for [insist], which is what givenUp tells. Processes
// that never live for so long do not keep a mark for ever: what is older than [oldest] counts as tried.
func settled(r *reconcile.Report, givenUp func(id string) bool) time.Time {
	through, last := r.Settled, r.Settled.Add(-oldest)
	open := func(id string, made time.Time) {
		if made.Before(last) {
			made = last
		}
		if made.Before(through) && !givenUp(id) {
			through = made
		}
	}
	for m := range listed(r) {
		if isOpen(m.Outcome) && !isPromised(m) && !m.Time.IsZero() {
			open(idOf(m), m.Time)
		}
	}
	if openUnnamed(r) > 0 {
		open(unnamed, r.Since)
		if day := r.Settled.Add(-insist); r.Since.Before(day) { // some of them may be tried for less than a day
			through = earlier(through, day)
		} else {
			through = earlier(through, r.Since)
		}
	}
	return through
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
func (s *Schedule) tell(ctx context.Context, src *Source, found News, err error) {
	log := s.opt.Logger
	for i, m := range found.events {
		if i == maxLines {
			break
		}
		log.Warn("reconcile: an event never arrived", "source", src.Name, "key", m.Key, "entry", m.Entry, "type", m.Type, "time", m.Time,
			"refused", m.Refused, "outcome", string(cmp.Or(m.Outcome, "reported")), "why", m.Why)
	}
	s.metrics.run(src.Name, found, err)
	if found.any() {
		log.Warn("reconcile: events never arrived", "source", src.Name, "listed", found.Report.Listed, "missing", found.Missing,
			"redelivered", found.Redelivered, "stored", found.Stored, "failed", found.Failed)
		if s.opt.Found != nil {
			s.opt.Found(context.WithoutCancel(ctx), src.Name, found)
		}
	}
	if found.undated {
		log.Warn("reconcile: events are not on record, and the sender's list does not say when they were made, so that they may be from before it is compared: nothing is done about them; hookonce reconcile lists them",
			"source", src.Name, "count", found.Report.Undated)
	}
	switch {
	case errors.Is(context.Cause(ctx), errAnew):
		log.Info("reconcile: a run was ended, because its source is configured in another way by now", "source", src.Name)
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errTaken):
		log.Info("reconcile: another gateway goes on with a source", "source", src.Name)
	default:
		log.Warn("reconcile: a source could not be compared; it is tried again", "source", src.Name, "error", err)
	}
}
