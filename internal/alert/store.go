package alert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// The store.
const (
	slowCommit   = 250            // ms: a sender that waits for it in turn with others is at a second
	slowCommits  = 5              // that many make an average worth telling
	cleanupAfter = 26 * time.Hour // a sweep goes round once a day
	partitionGap = 24 * time.Hour // partitions are made days ahead
	fullSoon     = 14             // days: time to order a disk
)

var askDoctor = Action{Label: "Ask the doctor", Command: "hookonce doctor"}

// mendStore is what to do about a store that cannot be used.
func mendStore(s *overview.Snapshot) Action {
	if s.Store.Gone {
		return Action{Label: `Do not restart it yet: docs/operating.md says under "When the file is taken away" how to save what it has`, Command: "hookonce doctor"}
	}
	return askDoctor
}

func findStoreAway(s *overview.Snapshot, _ float64) (gauge, *Alert) {
	t := s.Store.Away
	if t == nil {
		return gaugeOf(0, "it answers"), nil
	}
	shown := "What is shown is what was known last."
	if !slices.ContainsFunc(s.Parts, func(p overview.Part) bool { return !p.Read.IsZero() }) {
		shown = "Nothing is known of it yet."
	}
	return gaugeOf(1, "away for %s", span(s.At.Sub(t.Since))), &Alert{Severity: Page, Since: t.Since, Action: mendStore(s),
		Headline: fmt.Sprintf("The store is away since %s: %s. %s", clock(t.Since), t.Error, shown)}
}

func findStoreUnwritable(s *overview.Snapshot, _ float64) (gauge, *Alert) {
	t := s.Store.Unwritable
	switch {
	case s.Store.Away != nil:
		return gaugeOf(0, "not known while it is away"), nil
	case t == nil:
		return gaugeOf(0, "it can be written to"), nil
	}
	return gaugeOf(1, "it takes nothing for %s", span(s.At.Sub(t.Since))), &Alert{Severity: Page, Since: t.Since, Action: mendStore(s),
		Headline: fmt.Sprintf("The store answers and cannot be written to since %s: %s.", clock(t.Since), t.Error)}
}

func findStoreSlow(s *overview.Snapshot, at float64) (gauge, *Alert) {
	g := gaugeOf(share(s.Store.CommitMS, at), "%.0f ms on average of the last %d", s.Store.CommitMS, s.Store.Commits)
	if s.Store.Commits < slowCommits {
		g.share = min(g.share, share(s.Store.Commits, slowCommits))
	}
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Page, Count: s.Store.Commits, Action: askDoctor,
		Headline: fmt.Sprintf("The store is slow: a commit takes %.0f ms on average.", s.Store.CommitMS)}
}

func findStoreUnread(s *overview.Snapshot, _ float64) (gauge, *Alert) {
	if s.Store.Away != nil {
		return gaugeOf(0, "not known while it is away"), nil
	}
	var parts []string
	since := s.At
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Unanswered(s.At) {
			parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s (%s)", p.Name, strings.TrimSuffix(p.Error, ".")), " ()"))
			if last := latest(p.Read, s.Since); last.Before(since) {
				since = last
			}
		}
	}
	if len(parts) == 0 {
		return gaugeOf(0, "it answers"), nil
	}
	var blind []string
	for rule, of := range needs {
		if unread(s, of...) {
			blind = append(blind, rule)
		}
	}
	slices.Sort(blind)
	return gaugeOf(1, "no answer for %s", span(s.At.Sub(since))), &Alert{Severity: Ticket, Since: since, Count: int64(len(parts)), Action: askDoctor,
		Headline: fmt.Sprintf("Not known, because the store does not answer: %s. Blind for that: %s.", strings.Join(parts, ", "), strings.Join(blind, ", "))}
}

func findSendersRefused(s *overview.Snapshot, _ float64) (gauge, *Alert) {
	var ours int64
	for i := range s.Sources {
		ours += s.Sources[i].Five.Ours
	}
	g := gaugeOf(0, "%d answers 503 in five minutes", ours)
	switch {
	case s.Store.Full != nil:
		g = gaugeOf(1, "the queue is full for %s", span(s.At.Sub(s.Store.Full.Since)))
		return g, &Alert{Severity: Page, Since: s.Store.Full.Since, Count: ours, Action: askDoctor,
			Headline: "Senders are refused with 503: events arrive faster than the store commits them."}
	case ours > 0:
		g.share = 1
		return g, &Alert{Severity: Page, Count: ours, Action: seeRefused(s),
			Headline: fmt.Sprintf("Senders were refused with 503 %s in the last five minutes, for a fault of the gateway: %s.", times(ours), refusedMost(s))}
	}
	return g, nil
}

// ofTheStore are the reasons of refusals for which the store is to be looked at. For others the log has the cause.
var ofTheStore = []string{"queue_full", "store", "timeout"}

// seeRefused is what to do about most of the refusals.
func seeRefused(s *overview.Snapshot) Action {
	var store, others int64
	elsewhere := map[string]int64{}
	for i := range s.Sources {
		for reason, n := range s.Sources[i].Five.OursBy {
			if slices.Contains(ofTheStore, reason) {
				store += n
				continue
			}
			others += n
			elsewhere[s.Sources[i].Name] += n
		}
	}
	if store >= others {
		return askDoctor
	}
	return Action{Label: "See which requests, and look in the log for why", Command: "hookonce refusals " + mostFirst(elsewhere)[0]}
}

// mostNamed is how many sources a headline names, and of each how many reasons.
const mostNamed = 3

// refusedMost names the sources of which most was refused, and for what.
func refusedMost(s *overview.Snapshot) string {
	of, reasons := map[string]int64{}, map[string]map[string]int64{}
	for i := range s.Sources {
		if o := &s.Sources[i]; o.Five.Ours > 0 {
			of[o.Name], reasons[o.Name] = o.Five.Ours, o.Five.OursBy
		}
	}
	return named(mostFirst(of), func(source string) string {
		by := reasons[source]
		return source + " (" + named(mostFirst(by), func(reason string) string { return fmt.Sprintf("%s %d", reason, by[reason]) }) + ")"
	})
}

// named puts the first of names into words, and says how many others there are.
func named(names []string, words func(string) string) string {
	var all []string
	for _, name := range names[:min(len(names), mostNamed)] {
		all = append(all, words(name))
	}
	if others := len(names) - len(all); others > 0 {
		all = append(all, fmt.Sprintf("%d more", others))
	}
	return strings.Join(all, ", ")
}

// mostFirst returns the names of which there is the most first.
func mostFirst(of map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
}

func findCleanupLate(s *overview.Snapshot, at float64) (gauge, *Alert) {
	last := latest(s.Store.Cleaned, s.Since)
	if last.IsZero() {
		return gaugeOf(0, "not known yet"), nil
	}
	late := s.At.Sub(last)
	g := gaugeOf(share(late.Seconds(), at), "%s ago", span(late))
	if s.Store.Cleaned.Before(s.Since) {
		g = gaugeOf(g.share, "not since the start %s ago", span(late))
	}
	if g.share <= 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Since: last, Action: askDoctor,
		Headline: fmt.Sprintf("The cleanup has not come to an end since %s: what is past its retention stays in the store.", clock(last))}
}

func findPartitionsEnd(s *overview.Snapshot, at float64) (gauge, *Alert) {
	end := s.Store.Partitioned
	if end.IsZero() {
		return gaugeOf(0, "the gateway makes no partitions"), nil
	}
	g := gaugeOf(share(at, end.Sub(s.At).Seconds()), "the last ends in %s", span(end.Sub(s.At)))
	if !s.At.Before(end) {
		g = gaugeOf(g.share, "the last ended %s ago", span(s.At.Sub(end)))
	}
	if g.share <= 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Since: end.Add(-time.Duration(at * float64(time.Second))), Action: askDoctor,
		Headline: fmt.Sprintf("The last partition ends at %s: no later one could be made, and what comes then is slow to delete.", clock(end))}
}

func findStoreFull(s *overview.Snapshot, at float64) (gauge, *Alert) {
	switch {
	case s.Store.FreeBytes <= 0:
		return gaugeOf(0, "how much is free is not known"), nil
	case s.Store.DailyBytes <= 0:
		return gaugeOf(0, "the store does not grow"), nil
	}
	days := s.Store.FreeBytes / s.Store.DailyBytes
	g := gaugeOf(share(at, days), "in %d days", days)
	if g.share <= 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Count: days, Action: Action{Label: "Make room, or keep bodies for a shorter time", Place: "retention.bodies"},
		Headline: fmt.Sprintf("The disk is full in %d days: the store grows by %d MB a day, and %d MB are free.", days, s.Store.DailyBytes>>20, s.Store.FreeBytes>>20)}
}

func findCellAway(s *overview.Snapshot, _ float64, see func(string, gauge, *Alert)) {
	if len(s.Cells) == 0 {
		see("", gaugeOf(0, "there are no other cells"), nil)
	}
	for _, c := range s.Cells {
		if c.Error == "" {
			see(c.Name, gaugeOf(0, "it answers"), nil)
			continue
		}
		severity, effect := Page, "Senders of events that it owns are answered 503."
		if c.Idle {
			severity, effect = Ticket, "It owns no keys and is asked for none, so nobody is refused."
		}
		see(c.Name, gaugeOf(1, "away"), &Alert{Severity: severity, Action: Action{Label: "Look at the cells", Command: "hookonce cells status"},
			Headline: fmt.Sprintf("The cell %s is away: %s. %s", c.Name, strings.TrimSuffix(c.Error, "."), effect)})
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func findEffectsDoubled(s *overview.Snapshot, _ float64, see func(string, gauge, *Alert)) {
	if len(s.Reconciled) == 0 {
		see("", gaugeOf(0, "hookonce reconcile effects was not run"), nil)
	}
	named := map[string]bool{} // by another question about the same table
	for _, r := range s.Reconciled {
		g := gaugeOf(0, "%d, looked at %s ago", r.Doubled, span(s.At.Sub(r.At)))
		if r.Doubled == 0 || s.At.After(r.Until) || named[r.Table] {
			see(r.Table, g, nil)
			continue
		}
		named[r.Table], g.share = true, 1
		events, sample := "1 event has", ""
		if r.Doubled > 1 {
			events = fmt.Sprintf("%d events have", r.Doubled)
		}
		if r.Sample != "" {
			sample = ", such as " + r.Sample
		}
		see(r.Table, g, &Alert{Severity: Page, Since: r.At, Count: r.Doubled, Action: Action{Label: "List them", Command: r.Command},
			Headline: fmt.Sprintf("In %s, %s more than one effect (%d too many)%s: hookonce reconcile effects found that at %s.", r.Table, events, r.Surplus, sample, clock(r.At))})
	}
}
