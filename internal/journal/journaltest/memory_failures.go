package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// FailureGroups implements [journal.Store].
func (m *Memory) FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Failures{}, err
	}
	open, past := map[failure][]journal.FailureSample{}, map[failure][]journal.FailureSample{}
	for _, d := range m.deliveries {
		if d.State == journal.Failed || d.State == journal.Dead {
			of := failure{d.Destination, d.Kind, d.Status}
			open[of] = append(open[of], m.sample(of, d.EventID, d.State, d.LastError))
		}
	}
	for _, o := range m.attempts {
		of := failure{o.Destination, o.Kind, o.Status}
		if _, is := open[of]; is || o.Kind == "" || o.Started.Before(since) {
			continue
		}
		state := journal.Done
		if d := m.deliveries[target{o.EventID, o.Destination}]; d != nil {
			state = d.State
		}
		past[of] = append(past[of], m.sample(of, o.EventID, state, o.Error))
	}
	var f journal.Failures
	var openCut, pastCut bool
	f.Open, openCut = m.groups(open, time.Time{})
	f.Resolved, pastCut = m.groups(past, since)
	f.More = openCut || pastCut
	return f, nil
}

// failure is what the members of a group of failures have in common.
type failure struct {
	destination string
	kind        journal.ErrorKind
	status      int
}

// attemptsOf returns the attempts that failed so, in the order in which they ended; of event 0 those of all.
func (m *Memory) attemptsOf(f failure, event int64) (all []journal.Outcome) {
	for _, o := range m.attempts {
		if (failure{o.Destination, o.Kind, o.Status}) == f && f.kind != "" && (event == 0 || o.EventID == event) {
			all = append(all, o)
		}
	}
	return all
}

func (m *Memory) sample(f failure, event int64, state journal.State, text string) journal.FailureSample {
	ev := m.events[event]
	s := journal.FailureSample{EventID: event, Source: ev.source, Key: ev.key, Type: ev.kind, State: state, Error: text}
	if all := m.attemptsOf(f, event); len(all) > 0 {
		last := all[len(all)-1]
		s.Started, s.Excerpt = last.Started, bytes.Clone(last.Excerpt)
	}
	return s
}

// groups makes groups of their members, of which those of past attempts come once for each attempt.
func (m *Memory) groups(members map[failure][]journal.FailureSample, since time.Time) ([]journal.FailureGroup, bool) {
	var all []journal.FailureGroup
	for of, samples := range members {
		g := journal.FailureGroup{Destination: of.destination, Kind: of.kind, Status: of.status, Count: int64(len(samples))}
		slices.SortStableFunc(samples, func(a, b journal.FailureSample) int { return cmp.Compare(b.EventID, a.EventID) })
		oldest := samples[len(samples)-1].EventID
		g.Since, g.Latest = journal.IDTime(oldest), journal.IDTime(samples[0].EventID)
		about := oldest
		if !since.IsZero() {
			about = 0
		}
		if first := m.startedSince(m.attemptsOf(of, about), since); len(first) > 0 {
			g.Since = first[0]
		}
		if all := m.startedSince(m.attemptsOf(of, 0), since); len(all) > 0 {
			g.Latest = all[len(all)-1]
		}
		for _, s := range samples {
			if s.State == journal.Dead && since.IsZero() {
				g.Dead++
			}
		}
		samples = slices.CompactFunc(samples, func(a, b journal.FailureSample) bool { return a.EventID == b.EventID })
		g.Samples = samples[:min(len(samples), journal.FailureSamples)]
		g.Error = g.Samples[0].Error
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b journal.FailureGroup) int {
		return cmp.Or(cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Status, b.Status))
	})
	return journal.CutFailures(all)
}

// startedSince returns when the attempts began that began since then, in order.
func (m *Memory) startedSince(all []journal.Outcome, since time.Time) (times []time.Time) {
	for _, o := range all {
		if !o.Started.Before(since) {
			times = append(times, o.Started)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}
