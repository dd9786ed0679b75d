package alert

import (
	"fmt"
	"net/url"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// Destinations.
const (
	budget        = 0.005 // of first attempts may fail
	fastBurn      = 14.4  // times the budget, over an hour and five minutes: a fiftieth of a month's in an hour
	slowBurn      = 6     // over six hours and half an hour
	leastFirst    = 10
	leastFailed   = 3 // one or two of ten are nobody's trouble, and happen every week
	oldBacklog    = 15 * time.Minute
	manyDead      = 10 // in an hour
	forgotten     = 24 * time.Hour
	aheadBy       = time.Hour // journal.MuchAhead: clocks that somebody looks after differ by less
	leastPoisoned = 2         // in a group whose latest are of one type
)

func findFailing(s *overview.Snapshot, d *overview.DestinationState, _ float64) (gauge, *Alert) {
	h := d.Health
	switch {
	case h == nil:
		return gaugeOf(0, "not known"), nil
	case h.State != "ill":
		return gaugeOf(0, "%s", h.State), nil
	}
	a := &Alert{Severity: Page, Count: d.Backlog}
	if h.Since != nil {
		a.Since = *h.Since
	}
	kind := "" // the most that fails may have failed long ago, for another reason
	if f := latestFailure(d, func(f *overview.Failure) bool { return f.Error == h.Error }); f != nil {
		kind, a.Sample = f.Kind, sample(f)
	}
	cause := "has been failing"
	a.Action = Action{Label: "See what it answers, and mend it; deliveries go on by themselves", Command: "hookonce events list --destination " + d.Name + " --state failed", Place: d.URL}
	switch kind {
	case "timeout":
		cause = "hangs"
	case "dns":
		cause = "cannot be found by its name"
		a.Action = Action{Label: "Mend the name, or correct the address", Place: "the DNS of " + hostOf(d.URL)}
	case "refused", "reset", "unreachable":
		cause = "is down"
	case "tls":
		cause = "has a certificate that is not trusted"
	case "address":
		cause = "is at an address that is not allowed"
		a.Action = Action{Label: "Correct the address, or allow it", Place: "delivery.allow_private, delivery.ports"}
	}
	a.Headline = fmt.Sprintf("%s %s since %s: %s; %s.", d.Name, cause, clock(a.Since), h.Error, waiting(s, d))
	return gaugeOf(1, "%s", h.State), a
}

// latestFailure returns the group that had a failure last, of those that are meant. Nil: none is.
func latestFailure(d *overview.DestinationState, meant func(*overview.Failure) bool) (last *overview.Failure) {
	for i := range d.Failures {
		if f := &d.Failures[i]; meant(f) && (last == nil || f.Latest.After(last.Latest)) {
			last = f
		}
	}
	return last
}

// sample is the latest event of a group of failures.
func sample(f *overview.Failure) *Sample {
	return &Sample{Source: f.Source, Event: f.Event, Type: f.Type, Error: f.Error}
}

// waiting says how much waits, and for how long.
func waiting(s *overview.Snapshot, d *overview.DestinationState) string {
	if d.Since == nil || d.Since.After(s.At) { // put off, or by a clock that was ahead
		return fmt.Sprintf("%d events wait", d.Backlog)
	}
	return fmt.Sprintf("%d events wait, the longest since %s", d.Backlog, clock(*d.Since))
}

func findFirstFail(s *overview.Snapshot, d *overview.DestinationState, at float64) (gauge, *Alert) {
	over := func(long, lately overview.FirstAttempts, times float64) float64 {
		is := min(share(long.FirstFailed, times*at*float64(long.First)), share(lately.FirstFailed, times*at*float64(lately.First)))
		if long.First < leastFirst || long.FirstFailed < leastFailed {
			is = min(is, share(long.First, leastFirst), share(long.FirstFailed, leastFailed))
		}
		return is
	}
	severity, in, span, long := Page, d.Hour.FirstAttempts(), "hour", time.Hour
	is, slowly := over(in, d.Five.FirstAttempts(), fastBurn), over(d.Six, d.Half.FirstAttempts(), slowBurn)
	if is <= 1 && slowly > is {
		severity, in, span, long, is = Ticket, d.Six, "six hours", 6*time.Hour, slowly
	}
	g := gaugeOf(is, "no first attempt in the last %s", span)
	if in.First > 0 {
		g = gaugeOf(is, "%s of %d in the last %s", percent(float64(in.FirstFailed)/float64(in.First)), in.First, span)
	}
	if is <= 1 {
		return g, nil
	}
	a := &Alert{Severity: severity, Count: in.FirstFailed,
		Action:   Action{Label: "See what failed", Command: "hookonce failures"}, // also what succeeded since, at a later attempt
		Headline: fmt.Sprintf("%s fails %d of %d events at the first attempt in the last %s", d.Name, in.FirstFailed, in.First, span)}
	if f := latestFailure(d, func(f *overview.Failure) bool { return s.At.Sub(f.Latest) <= long }); f != nil {
		a.Headline += ": " + f.Error
		a.Since, a.Sample = f.Since, sample(f)
	}
	a.Headline += "."
	return g, a
}

func findBlocked(_ *overview.Snapshot, d *overview.DestinationState, _ float64) (gauge, *Alert) {
	b := d.Blocked
	if b == nil {
		return gaugeOf(0, "nothing waits so"), nil
	}
	return gaugeOf(1, "%d wait for %s", b.Waiting, b.Resource), &Alert{Severity: Ticket, Count: b.Waiting, Sample: &Sample{Event: b.Event},
		Action:   Action{Label: "Look at the event that fails", Command: fmt.Sprintf("hookonce events show %d", b.Event)},
		Headline: fmt.Sprintf("One event of %s fails at %s, and %d later ones of it wait for their turn.", b.Resource, d.Name, b.Waiting)}
}

// poisoned returns the largest of the first groups of deliveries, to a destination that takes others, whose latest events have
// one type. That older ones have it is not known, nor that none of the type is taken.
func poisoned(d *overview.DestinationState, least float64) (f *overview.Failure) {
	for i := range d.Failures {
		if of := &d.Failures[i]; of.Type != "" && d.Hour.Done > 0 && (f == nil || float64(f.Dead) < least && of.Dead > f.Dead) {
			f = of
		}
	}
	return f
}

func findPoison(_ *overview.Snapshot, d *overview.DestinationState, at float64) (gauge, *Alert) {
	f := poisoned(d, at)
	if f == nil || f.Dead == 0 {
		return gaugeOf(0, "none is dead so"), nil
	}
	g := gaugeOf(share(f.Dead, at), "%d of type %s", f.Dead, f.Type)
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Since: f.Since, Count: f.Dead, Action: replay(d, f), Sample: sample(f),
		Headline: fmt.Sprintf("%s takes events, but %s given up (%s); the last that failed so are all of type %s.", d.Name, deliveries(f.Dead), f.Error, f.Type)}
}

// replay is the action that has dead deliveries made again, once their cause is gone: all of a destination, or those of a
// group. A replay to one that no gateway delivers to is refused.
func replay(d *overview.DestinationState, group *overview.Failure) Action {
	if !d.Configured {
		return Action{Label: "Give it its name back and replay them, or acknowledge that they are given up", Place: "destinations and sources in the configuration"}
	}
	command := "hookonce events replay --destination " + d.Name + " --state dead"
	if group != nil && group.Kind != "" {
		command += " --error " + group.Kind
		if group.Status != 0 {
			command += fmt.Sprintf(" --status %d", group.Status)
		}
	}
	return Action{Label: "Replay them when the destination takes them", Method: "POST", Path: "/replay", Command: command + " --reason TEXT --dry-run"}
}

func findDied(_ *overview.Snapshot, d *overview.DestinationState, at float64) (gauge, *Alert) {
	g := gaugeOf(share(d.Hour.Dead, at), "%d dead; %d became so in the last hour", d.Dead, d.Hour.Dead)
	if d.Dead == 0 {
		g.share = 0
		return g, nil
	}
	a := &Alert{Severity: Ticket, Count: d.Dead, Action: replay(d, nil)}
	if g.share > 1 {
		a.Severity = Page
	}
	why := ""
	if f := latestFailure(d, func(f *overview.Failure) bool { return f.Dead > 0 }); f != nil {
		why, a.Since, a.Sample = ": "+f.Error, f.Since, sample(f)
	}
	a.Headline = fmt.Sprintf("%s given up at %s%s.", deliveries(d.Dead), d.Name, why)
	return g, a
}

func findPaused(s *overview.Snapshot, d *overview.DestinationState, at float64) (gauge, *Alert) {
	if d.Pause == nil {
		return gaugeOf(0, "not paused"), nil
	}
	g := gaugeOf(share(s.At.Sub(d.Pause.At).Seconds(), at), "for %s", span(s.At.Sub(d.Pause.At)))
	a := &Alert{Severity: Info, Since: d.Pause.At, Count: d.Backlog,
		Action: Action{Label: "Resume", Method: "POST", Path: "/destinations/" + url.PathEscape(d.Name) + "/resume",
			Command: "hookonce destinations resume " + d.Name + " --reason TEXT"},
		Headline: fmt.Sprintf("%s is paused since %s by %s (%s); %s.", d.Name, clock(d.Pause.At), d.Pause.By, d.Pause.Reason, waiting(s, d))}
	if g.share > 1 {
		a.Severity = Ticket
	}
	return g, a
}

func findBacklogOld(s *overview.Snapshot, d *overview.DestinationState, at float64) (gauge, *Alert) {
	if d.Oldest == nil {
		return gaugeOf(0, "nothing waits"), nil
	}
	age := max(0, s.At.Sub(*d.Since)) // clocks differ a little, and what was replayed may be put off
	g := gaugeOf(share(age.Seconds(), at), "%s, of %d", span(age), d.Backlog)
	nameBack := Action{Label: "Give it its name back, and what waits goes on by itself", Place: "destinations and sources in the configuration"}
	if d.Oldest.Sub(s.At) > aheadBy {
		action := Action{Label: "Set the clocks, ask the doctor what was left behind, and have what failed tried at once",
			Command: "hookonce events replay --destination " + d.Name + " --state failed --reason TEXT --dry-run"}
		if !d.Configured { // a replay to it is refused
			action = nameBack
		}
		return gaugeOf(mostShare, "not known, of %d: a clock was ahead", d.Backlog), &Alert{Severity: Page, Count: d.Backlog, Action: action,
			Headline: fmt.Sprintf("%s: how long events wait is not known: %d wait, and the oldest came, by a clock that was ahead, at %s. What was to be tried by that clock is due only then.",
				d.Name, d.Backlog, clock(*d.Oldest))}
	}
	if g.share <= 1 {
		return g, nil
	}
	waits := waiting(s, d)
	if !d.Configured {
		return g, &Alert{Severity: Page, Since: *d.Since, Count: d.Backlog,
			Action:   nameBack,
			Headline: fmt.Sprintf("%s is not configured, and nothing delivers what waits for it: %s.", d.Name, waits)}
	}
	drains := "it does not get shorter"
	switch {
	case d.DrainsIn == nil:
		drains = "whether it gets shorter is not known yet"
	case *d.DrainsIn > 0:
		drains = "it drains in " + time.Duration(*d.DrainsIn*float64(time.Second)).Round(time.Second).String()
	}
	return g, &Alert{Severity: Page, Since: *d.Since, Count: d.Backlog,
		Action:   Action{Label: "Look at the destination", Command: "hookonce destinations list --all"},
		Headline: fmt.Sprintf("%s is behind: %s; %s.", d.Name, waits, drains)}
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	return address
}
