package alert

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// Signatures.
const (
	latestRequests = 20  // that many tell a secret from a stranger
	mostFail       = 0.9 // of them
	leastMissing   = 8   // authentic ones: that none of so many came is chance once in 3000 pauses
)

// broken returns, as a share of what it takes, how near a source is to that nearly all of its latest requests fail, and none
// was authentic since they began to, though some were to be expected; and how many fail because of their time. Without the last
// a stranger who sends enough would do: at night, and to a source that seldom sends, nothing else comes for a while.
func broken(at time.Time, o *overview.SourceState) (is float64, early, old int64) {
	n, failed := o.Latest.Received, o.Latest.Failed()
	if o.FailedSince.After(o.LastVerified) {
		is = share(failed, mostFail*float64(n))
	}
	if n < latestRequests {
		is = min(is, share(n, latestRequests))
	}
	if n, known := missing(at, o); known {
		is = min(is, share(n, leastMissing))
	}
	return is, o.Latest.Unverified["timestamp_future"], o.Latest.Unverified["timestamp_old"]
}

// missing returns how much that is authentic usually comes in the time since it last did, by the last hour or by what is learned of
// weeks, whichever has more; and whether either is known. What comes at once counts as one: senders of clumps pause for long. Of a
// sender that is heard less than leastMissing times on a usual day, such as each night at another hour, or on Mondays, nothing is
// ever missing, and it must not keep its new secret to itself by that.
func missing(at time.Time, o *overview.SourceState) (n float64, known bool) {
	if o.Hour.Active > 0 {
		whole := int64(at.Sub(o.LastVerified)/time.Minute) - 1 // it came at any time of its minute
		if n, known = 0, true; whole > 0 {
			n = float64(whole) * -math.Log(1-float64(o.Hour.Active)/61) // of 60 minutes and the one that has begun
		}
	}
	if o.Silence.Known() && o.Silence.Daily >= leastMissing {
		n, known = max(n, o.Silence.Missing), true
	}
	return n, known
}

func findSecretRotated(s *overview.Snapshot, o *overview.SourceState, _ float64) (gauge, *Alert) {
	is, early, old := broken(s.At, o)
	failed := o.Latest.Failed()
	g := gaugeOf(is, "%d of the last %d are not authentic", failed, o.Latest.Received)
	if 2*(early+old) > failed {
		g.share = 0 // see findClockOff
	}
	if g.share < 1 {
		return g, nil
	}
	reason, most := "", int64(0)
	for r, n := range o.Latest.Unverified {
		if n > most || n == most && r < reason {
			reason, most = r, n
		}
	}
	if reason == "undecided" {
		return g, &Alert{Severity: Page, Since: o.FailedSince, Count: failed,
			Headline: fmt.Sprintf("No request to %s can be checked since %s (%s): the keys of its sender cannot be fetched.", o.Name, clock(o.FailedSince), reason),
			Action:   Action{Label: "Look in the log for why, and have the gateway reach them", Command: "hookonce refusals " + o.Name}}
	}
	return g, &Alert{Severity: Page, Since: o.FailedSince, Count: failed,
		Headline: fmt.Sprintf("No request to %s is authentic since %s (%s): its secret was changed at the sender, or something between changes the requests.", o.Name, clock(o.FailedSince), reason),
		Action:   Action{Label: "Add the new secret, here and to an application that verifies it, and reload", Place: "sources." + o.Name + ".secrets", Command: "hookonce reload"}}
}

func findClockOff(s *overview.Snapshot, o *overview.SourceState, _ float64) (gauge, *Alert) {
	is, early, old := broken(s.At, o)
	g := gaugeOf(is, "%d of the last %d are out of time", early+old, o.Latest.Received)
	if 2*(early+old) <= o.Latest.Failed() {
		g.share = 0
	}
	if g.share < 1 {
		return g, nil
	}
	way := "behind"
	if old > early {
		way = "ahead"
	}
	return g, &Alert{Severity: Page, Since: o.FailedSince, Count: early + old,
		Headline: fmt.Sprintf("The clock of this machine is %s of that of %s: its signed times are out of tolerance since %s.", way, o.Name, clock(o.FailedSince)),
		Action:   Action{Label: "Compare the clock, and set it", Command: "timedatectl status"}}
}

func findProbing(s *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	failed := o.Hour.Failed()
	g := gaugeOf(share(failed, at), "%d in an hour, beside %d that are authentic", failed, o.Hour.Verified)
	if is, _, _ := broken(s.At, o); is >= 1 {
		g.share = 0
	}
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Info, Count: failed, Action: Action{Label: "See what was refused", Command: "hookonce refusals " + o.Name},
		Headline: fmt.Sprintf("Somebody sends requests to %s that are not authentic: %d in the last hour, beside %d that are.", o.Name, failed, o.Hour.Verified)}
}

// leastUnrouted is how many events no route wants where that is no matter of their types: of a few it may be.
const leastUnrouted = 10

func findUnrouted(_ *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	in := o.Day
	g := gaugeOf(share(in.Unrouted, at), "%d of %d in 24 hours", in.Unrouted, in.New)
	if in.Unrouted < in.New || len(o.Destinations) == 0 { // a source that leads nowhere was meant to
		g.share = 0
	}
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Count: in.Unrouted,
		Headline: fmt.Sprintf("No route of %s wanted any of its %d events of the last 24 hours: they are acknowledged, and delivered nowhere.", o.Name, in.Unrouted),
		Action:   Action{Label: "Compare their types with the routes", Place: "sources." + o.Name + ".routes", Command: "hookonce events list --unrouted --source " + o.Name}}
}

// lostOf is how much of a source never arrived.
func lostOf(o *overview.SourceState) int64 {
	if o.NeverArrived == nil {
		return 0
	}
	return o.NeverArrived.Count + o.NeverArrived.Beyond
}

func findNeverArrived(_ *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	open := lostOf(o)
	g := gaugeOf(share(open, at), "%d", open)
	if g.share < 1 {
		return g, nil
	}
	events := "1 event that its sender made"
	if open > 1 {
		events = fmt.Sprintf("%d events that its sender made", open)
	}
	return g, &Alert{Severity: Ticket, Count: open, Since: o.NeverArrived.First,
		Action:   Action{Label: "See which, recover them or dismiss them", Command: "hookonce reconcile missing " + o.Name},
		Headline: fmt.Sprintf("%s never arrived at %s: the sender's list has them, the first of them was found at %s.", events, o.Name, clock(o.NeverArrived.First))}
}

// Comparisons with senders' lists.
const (
	latePeriods = 3
	lateGrace   = 15 * time.Minute // a run may take that long
	longRun     = 24 * time.Hour   // and one that is under way this long: then it is cut off again and again, and nothing comes of it
)

func findReconcileLate(s *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	c := o.Compared
	if c == nil {
		return gaugeOf(0, "it is not compared"), nil
	}
	last := latest(c.Ended, s.Since)
	late := s.At.Sub(last)
	period := time.Duration(c.Every) * time.Second
	g := gaugeOf(share(late.Seconds(), at*period.Seconds()+lateGrace.Seconds()), "%s ago, every %s", span(late), span(period))
	if c.Ended.Before(s.Since) {
		g = gaugeOf(g.share, "not since the start %s ago", span(late))
	}
	a := &Alert{Severity: Ticket, Since: last, Action: Action{Label: "Compare by hand, and see why", Command: "hookonce reconcile --source " + o.Name + " --since 48h"},
		Headline: fmt.Sprintf("%s was not compared with its sender's list since %s: what never arrives is not noticed.", o.Name, clock(last))}
	switch {
	case c.Error != "":
		g = gaugeOf(max(1, g.share), "failed %s ago", span(s.At.Sub(c.Ended)))
		a.Since, a.Headline = c.Through, fmt.Sprintf("%s could not be compared with its sender's list: %s. What never arrives is not noticed.", o.Name, strings.TrimSuffix(c.Error, "."))
	case c.Running && late < longRun: // some lists take hours, and who reads them holds a lease
		return gaugeOf(min(1, g.share), "it is being compared; the last ended %s ago", span(late)), nil
	case g.share <= 1:
		return g, nil
	}
	return g, a
}

// Secrets that are replaced.
const (
	secretSoon = 7 * 24 * time.Hour
	secretIdle = 7 * 24 * time.Hour // over which [overview.Secret.Week] counts
)

// secretUses returns how often each secret was used lately: in the last hour if that had enough requests to tell, else in the
// last day, or the last week.
func secretUses(o *overview.SourceState) (uses []int64, total int64) {
	for _, of := range []func(*overview.Secret) int64{
		func(s *overview.Secret) int64 { return s.Hour }, func(s *overview.Secret) int64 { return s.Day }, func(s *overview.Secret) int64 { return s.Week },
	} {
		uses, total = nil, 0
		for i := range o.Secrets {
			uses = append(uses, of(&o.Secrets[i]))
			total += uses[i]
		}
		if total >= latestRequests {
			break
		}
	}
	return uses, total
}

func findSecretEnds(s *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	uses, total := secretUses(o)
	first := -1
	for i := range o.Secrets {
		secret := &o.Secrets[i]
		if secret.Until == nil || secret.Shared || uses[i] == 0 || !s.At.Before(*secret.Until) && uses[i] < total {
			continue
		}
		if first < 0 || secret.Until.Before(*o.Secrets[first].Until) {
			first = i
		}
	}
	if first < 0 {
		return gaugeOf(0, "no secret that is used ends"), nil
	}
	until := *o.Secrets[first].Until
	g := gaugeOf(share(at, until.Sub(s.At).Seconds()), "secret %d ends in %s, used by %d of the last %d", first+1, span(until.Sub(s.At)), uses[first], total)
	if !s.At.Before(until) {
		g = gaugeOf(g.share, "secret %d has ended", first+1)
	}
	if g.share < 1 {
		return g, nil
	}
	name := fmt.Sprintf("Secret %d of %s", first+1, o.Name)
	a := &Alert{Severity: Ticket, Count: uses[first],
		Action: Action{Label: "Have the sender sign with a secret that lasts, or let this one end later, and reload", Place: "sources." + o.Name + ".secrets", Command: "hookonce reload"}}
	switch {
	case !s.At.Before(until):
		a.Since = until
		a.Headline = fmt.Sprintf("%s has ended at %s: all of the last %d authentic requests were signed with it, and none with one that lasts.", name, clock(until), total)
	case uses[first] == total:
		a.Headline = fmt.Sprintf("%s ends at %s, and all of the last %d requests were signed with it: from then on they are refused.", name, clock(until), total)
	default:
		a.Headline = fmt.Sprintf("%s ends at %s, and %d of the last %d requests were signed with it.", name, clock(until), uses[first], total)
	}
	return g, a
}

func findSecretUnused(s *overview.Snapshot, o *overview.SourceState, _ float64) (gauge, *Alert) {
	long := s.At.Add(-secretIdle)
	switch {
	case len(o.Secrets) < 2:
		return gaugeOf(0, "there is no second secret"), nil
	case o.SecretsSince.IsZero():
		return gaugeOf(0, "none was used yet"), nil
	case o.SecretsSince.After(long):
		return gaugeOf(0, "looked at for %s of %s", span(s.At.Sub(o.SecretsSince)), span(secretIdle)), nil
	}
	var unused []string
	var total int64
	for i := range o.Secrets {
		secret := &o.Secrets[i]
		if total += secret.Week; secret.Shared {
			break
		}
		if secret.Week == 0 && (secret.From == nil || secret.From.Before(long)) {
			unused = append(unused, fmt.Sprint(i+1))
		}
	}
	if len(unused) == 0 || total == 0 {
		return gaugeOf(0, "each secret is used"), nil
	}
	return gaugeOf(1, "secret %s is not used", strings.Join(unused, ", ")), &Alert{Severity: Info, Count: total,
		Action: Action{Label: "Remove it, and reload", Place: "sources." + o.Name + ".secrets", Command: "hookonce reload"},
		Headline: fmt.Sprintf("Secret %s of %s verified none of the %d authentic requests of the last seven days: it can be removed, unless the sender is to change to it.",
			strings.Join(unused, ", "), o.Name, total)}
}

// Copies.
const (
	deviations  = 6  // no false alarm in 28 days of senders of all rates
	leastReseen = 10 // events: fewer are nobody's storm
	sustained   = 3  // minutes
	pageTimes   = 10 // so many times the usual share
	manyCopies  = 50 // of one event in an hour
	sureSilence = 12 // minutes with events that are missing: by chance once in 160 000 pauses, of which a source has thousands a month
	leastSilent = 10 * time.Minute
)

func findConflict(_ *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	g := gaugeOf(share(o.Hour.Conflicts, at), "%d in an hour", o.Hour.Conflicts)
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Count: o.Hour.Conflicts,
		Action:   Action{Label: "Look at them", Command: "hookonce events list --source " + o.Name + " --seen conflict"},
		Headline: fmt.Sprintf("%s sent other content under a key that was stored before, %d times in the last hour: the first stands.", o.Name, o.Hour.Conflicts)}
}

func findCameAgain(_ *overview.Snapshot, o *overview.SourceState, _ float64) (gauge, *Alert) {
	in, span := o.Five, "five minutes"
	if !o.Usual.Exceeds(in.Events(), in.Reseen, deviations, leastReseen) {
		in, span = o.Hour, "hour"
	}
	most := o.Usual.Most(in.Events(), deviations, leastReseen)
	g := gaugeOf(share(in.Reseen, most), "%d of %d in the last %s; usual are %s, too many %.0f", in.Reseen, in.Events(), span, percent(o.Usual.Share), math.Ceil(most))
	if o.Usual.Hours < 24 {
		g = gaugeOf(g.share, "%d of %d in the last %s; too many %.0f; what is usual is learned from %d of 24 hours", in.Reseen, in.Events(), span, math.Ceil(most), o.Usual.Hours)
	}
	if o.ReseenFor < sustained {
		g.share = min(g.share, 1)
		return g, nil
	}
	g.share = max(g.share, 1)
	a := &Alert{Severity: Ticket, Count: in.Reseen,
		Action: Action{Label: "Look at them", Command: "hookonce events list --source " + o.Name + " --seen duplicate"},
		Headline: fmt.Sprintf("%s sends events again: %d of %d in the last %s, where %.2g %% is usual. Copies are recognised and not delivered.",
			o.Name, in.Reseen, in.Events(), span, 100*o.Usual.Share)}
	if float64(in.Reseen) > pageTimes*math.Max(o.Usual.Share*float64(in.Events()), leastReseen) {
		a.Severity = Page
	}
	return g, a
}

func findOneAgain(_ *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	g := gaugeOf(share(o.Hour.Copies, at*float64(o.Hour.Reseen)), "%d copies of %d in an hour", o.Hour.Copies, o.Hour.Reseen)
	if o.Hour.Reseen == 0 {
		g.share = 0
	}
	if g.share < 1 {
		return g, nil
	}
	return g, &Alert{Severity: Info, Count: o.Hour.Copies,
		Action:   Action{Label: "Look at it", Command: "hookonce events list --source " + o.Name + " --seen duplicate"},
		Headline: fmt.Sprintf("%s sends the same event again and again: %d copies of %d in the last hour.", o.Name, o.Hour.Copies, o.Hour.Reseen)}
}

func findSilent(s *overview.Snapshot, o *overview.SourceState, at float64) (gauge, *Alert) {
	if every := time.Duration(o.ExpectEvery) * time.Second; every > 0 {
		last := o.LastVerified
		if last.IsZero() {
			last = s.Since // nobody knows longer
		}
		g := gaugeOf(share(s.At.Sub(last), every), "last %s ago, expected every %s", span(s.At.Sub(last)), span(every))
		if o.LastVerified.IsZero() {
			g = gaugeOf(g.share, "none since the start %s ago, expected every %s", span(s.At.Sub(last)), span(every))
		}
		if g.share <= 1 {
			return g, nil
		}
		return g, &Alert{Severity: Ticket, Since: last, Count: int64(s.At.Sub(last) / every),
			Action:   Action{Label: "Look at the sender's own list of deliveries", Place: "the endpoint at " + o.Provider + " that posts to " + o.Path},
			Headline: fmt.Sprintf("%s is silent since %s: something is expected every %s.", o.Name, clock(last), every)}
	}
	if o.LastVerified.IsZero() {
		return gaugeOf(0, "nothing came yet"), nil
	}
	silence := s.At.Sub(o.LastVerified)
	g := gaugeOf(share(o.Silence.Missing, at), "%.1f missing, last %s ago, learned from %.1f days", o.Silence.Missing, span(silence), o.Silence.Days)
	if silence < leastSilent {
		g.share = min(g.share, share(silence, leastSilent))
	}
	if g.share <= 1 {
		return g, nil
	}
	return g, &Alert{Severity: Ticket, Since: o.LastVerified, Count: int64(o.Silence.Missing),
		Action:   Action{Label: "Look at the sender's own list of deliveries", Place: "the endpoint at " + o.Provider + " that posts to " + o.Path},
		Headline: fmt.Sprintf("%s is silent since %s: in that time %.0f minutes usually have events.", o.Name, clock(o.LastVerified), o.Silence.Missing)}
}
