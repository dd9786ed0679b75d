package alert

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// Unit is what a threshold counts.
type Unit string

// The units. A threshold that has none cannot be changed.
const (
	Number  Unit = "number"
	Seconds Unit = "seconds"
)

// Rule finds one kind of trouble.
type Rule struct {
	Name string
	// When says when it fires, for people; Severity how severe that is at most.
	When     string
	Severity Severity
	// For is how long it has to hold before it fires.
	For time.Duration
	// Threshold is what is compared with, in a unit. Without one it means nothing.
	Threshold float64
	Unit      Unit
	// Local is set if it is about the store itself, so that it is judged, and told, without.
	Local bool

	find func(s *overview.Snapshot, at float64) []Alert
}

// The names of the rules.
const (
	storeAway       = "store_away"
	storeUnwritable = "store_unwritable"
	// Unrecorded is the rule of alerts that the store does not take. No snapshot shows it: who evaluates finds it.
	Unrecorded = "alerts_unrecorded"
	// FirstAttemptsFail is the rule whose threshold is a budget.
	FirstAttemptsFail = "first_attempts_fail"
	storeSlow         = "store_slow"
	sendersRefused    = "senders_refused"
	secretRotated     = "secret_rotated"
	clockOff          = "clock_off"
	failing           = "destination_failing"
	blocked           = "group_blocked"
	poison            = "type_fails"
	died              = "died"
	paused            = "paused"
	backlogOld        = "backlog_old"
	conflict          = "conflict"
	cameAgain         = "came_again"
	oneAgain          = "one_again"
	silent            = "silent_source"
	cleanupLate       = "cleanup_late"
	partitionsEnd     = "partitions_end"
	storeFull         = "store_full"
	probing           = "probing"
	effectsDoubled    = "effects_doubled"
	secretEnds        = "secret_ends"
	secretUnused      = "secret_unused"
)

// rules stand in the order in which one is told before another of the same severity.
var rules = []Rule{
	{Name: storeAway, When: "the store does not answer", Severity: Page, For: time.Minute, Local: true, find: ofStore(findStoreAway)},
	{Name: storeUnwritable, When: "the store answers and takes nothing", Severity: Page, For: time.Minute, Local: true, find: ofStore(findStoreUnwritable)},
	{Name: Unrecorded, When: "what is wrong cannot be put on record, though the store answers", Severity: Page, For: time.Minute, Local: true,
		find: func(*overview.Snapshot, float64) []Alert { return nil }},
	{Name: storeSlow, When: "a commit takes as many milliseconds on average", Severity: Page, For: 2 * time.Minute, Threshold: slowCommit, Unit: Number, find: ofStore(findStoreSlow)},
	{Name: secretRotated, When: "nearly all of the last 20 requests to a source are not authentic, and none was since", Severity: Page, find: ofSources(findSecretRotated)},
	{Name: clockOff, When: "the same, because of the times in them", Severity: Page, find: ofSources(findClockOff)},
	{Name: failing, When: "the breaker says that a destination is ill", Severity: Page, For: time.Minute, find: ofDestinations(findFailing)},
	{Name: blocked, When: "events of a resource wait for one that fails", Severity: Ticket, For: 5 * time.Minute, find: ofDestinations(findBlocked)},
	{Name: poison, When: "as many deliveries are dead whose latest events have one type, at a destination that takes others", Severity: Ticket, Threshold: leastPoisoned, Unit: Number, find: ofDestinations(findPoison)},
	{Name: paused, When: "a destination is paused; a ticket once it is for longer than that", Severity: Ticket, Threshold: forgotten.Seconds(), Unit: Seconds, find: ofDestinations(findPaused)},
	{Name: FirstAttemptsFail, When: "the share of first attempts that fail is 14.4 times as large over an hour and five minutes (6 times over six hours and half an hour: a ticket), of at least 10, of which at least 3 failed", Severity: Page,
		Threshold: budget, Unit: Number, find: ofDestinations(findFirstFail)},
	{Name: sendersRefused, When: "senders are answered 503 for a fault of ours, or the queue is full", Severity: Page, For: time.Minute, find: ofStore(findSendersRefused)},
	{Name: effectsDoubled, When: "a run of hookonce reconcile found events that took effect more than once", Severity: Page, find: findEffectsDoubled},
	{Name: died, When: "deliveries are dead; a page if it became more than so many in an hour", Severity: Page, Threshold: manyDead, Unit: Number, find: ofDestinations(findDied)},
	{Name: backlogOld, When: "the oldest delivery that is open is older", Severity: Page, For: time.Minute, Threshold: oldBacklog.Seconds(), Unit: Seconds, find: ofDestinations(findBacklogOld)},
	{Name: conflict, When: "so many copies came with other content under the same key in an hour", Severity: Ticket, Threshold: 1, Unit: Number, find: ofSources(findConflict)},
	{Name: cameAgain, When: "more events came again than is usual, for three minutes; a page at ten times that", Severity: Page, find: ofSources(findCameAgain)},
	{Name: silent, When: "so many minutes with events are missing, by what the source usually sends; or nothing came for longer than its expect_every", Severity: Ticket,
		Threshold: sureSilence, Unit: Number, find: ofSources(findSilent)},
	{Name: secretEnds, When: "requests are signed with a secret that ends sooner; or, all of them, with one that has ended", Severity: Ticket, For: 10 * time.Minute,
		Threshold: secretSoon.Seconds(), Unit: Seconds, find: ofSources(findSecretEnds)},
	{Name: cleanupLate, When: "the cleanup has not come to an end for longer", Severity: Ticket, Threshold: cleanupAfter.Seconds(), Unit: Seconds, find: ofStore(findCleanupLate)},
	{Name: partitionsEnd, When: "the last partition ends sooner", Severity: Ticket, Threshold: partitionGap.Seconds(), Unit: Seconds, find: ofStore(findPartitionsEnd)},
	{Name: storeFull, When: "the disk is full in fewer days, as the store grew in the last seven", Severity: Ticket, For: 10 * time.Minute, Threshold: fullSoon, Unit: Number, find: ofStore(findStoreFull)},
	{Name: oneAgain, When: "one event came so many times in an hour", Severity: Info, Threshold: manyCopies, Unit: Number, find: ofSources(findOneAgain)},
	{Name: probing, When: "so many requests in an hour are not authentic, beside some that are", Severity: Info, Threshold: latestRequests, Unit: Number, find: ofSources(findProbing)},
	{Name: secretUnused, When: "one of several secrets verified nothing for seven days, while another one did", Severity: Info, find: ofSources(findSecretUnused)},
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

func ofStore(find func(*overview.Snapshot, float64) *Alert) func(*overview.Snapshot, float64) []Alert {
	return func(s *overview.Snapshot, at float64) []Alert {
		if a := find(s, at); a != nil {
			return []Alert{*a}
		}
		return nil
	}
}

func ofSources(find func(*overview.Snapshot, *overview.SourceState, float64) *Alert) func(*overview.Snapshot, float64) []Alert {
	return func(s *overview.Snapshot, at float64) (all []Alert) {
		for i := range s.Sources {
			if a := find(s, &s.Sources[i], at); a != nil {
				a.Subject = s.Sources[i].Name
				all = append(all, *a)
			}
		}
		return all
	}
}

func ofDestinations(find func(*overview.Snapshot, *overview.DestinationState, float64) *Alert) func(*overview.Snapshot, float64) []Alert {
	return func(s *overview.Snapshot, at float64) (all []Alert) {
		for i := range s.Destinations {
			if a := find(s, &s.Destinations[i], at); a != nil {
				a.Subject = s.Destinations[i].Name
				all = append(all, *a)
			}
		}
		return all
	}
}

// The store.
const (
	slowCommit   = 250            // ms: a sender that waits for it in turn with others is at a second
	slowCommits  = 5              // that many make an average worth telling
	cleanupAfter = 26 * time.Hour // a sweep goes round once a day
	partitionGap = 24 * time.Hour // partitions are made days ahead
	fullSoon     = 14             // days: time to order a disk
)

var askDoctor = Action{Label: "Ask the doctor", Command: "hookonce doctor"}

func findStoreAway(s *overview.Snapshot, _ float64) *Alert {
	if s.Store.Away == nil {
		return nil
	}
	t := s.Store.Away
	shown := "What is shown is what was known last."
	if !slices.ContainsFunc(s.Parts, func(p overview.Part) bool { return !p.Read.IsZero() }) {
		shown = "Nothing is known of it yet."
	}
	return &Alert{Severity: Page, Since: t.Since, Action: askDoctor,
		Headline: fmt.Sprintf("The store is away since %s: %s. %s", clock(t.Since), t.Error, shown)}
}

func findStoreUnwritable(s *overview.Snapshot, _ float64) *Alert {
	t := s.Store.Unwritable
	if t == nil || s.Store.Away != nil {
		return nil
	}
	return &Alert{Severity: Page, Since: t.Since, Action: askDoctor,
		Headline: fmt.Sprintf("The store answers and cannot be written to since %s: %s.", clock(t.Since), t.Error)}
}

func findStoreSlow(s *overview.Snapshot, at float64) *Alert {
	if s.Store.Commits < slowCommits || s.Store.CommitMS < at {
		return nil
	}
	return &Alert{Severity: Page, Count: s.Store.Commits, Action: askDoctor,
		Headline: fmt.Sprintf("The store is slow: a commit takes %.0f ms on average.", s.Store.CommitMS)}
}

func findSendersRefused(s *overview.Snapshot, _ float64) *Alert {
	var ours int64
	for i := range s.Sources {
		ours += s.Sources[i].Five.Ours
	}
	switch {
	case s.Store.Full != nil:
		return &Alert{Severity: Page, Since: s.Store.Full.Since, Count: ours, Action: askDoctor,
			Headline: "Senders are refused with 503: events arrive faster than the store commits them."}
	case ours > 0:
		return &Alert{Severity: Page, Count: ours, Action: askDoctor,
			Headline: fmt.Sprintf("Senders were refused with 503 %d times in the last five minutes, for a fault of the gateway.", ours)}
	}
	return nil
}

func findCleanupLate(s *overview.Snapshot, at float64) *Alert {
	last := latest(s.Store.Cleaned, s.Since)
	if late := s.At.Sub(last); last.IsZero() || late.Seconds() <= at {
		return nil
	}
	return &Alert{Severity: Ticket, Since: last, Action: askDoctor,
		Headline: fmt.Sprintf("The cleanup has not come to an end since %s: what is past its retention stays in the store.", clock(last))}
}

func findPartitionsEnd(s *overview.Snapshot, at float64) *Alert {
	end := s.Store.Partitioned
	if end.IsZero() || end.Sub(s.At).Seconds() >= at {
		return nil
	}
	return &Alert{Severity: Ticket, Since: end.Add(-time.Duration(at * float64(time.Second))), Action: askDoctor,
		Headline: fmt.Sprintf("The last partition ends at %s: what comes later is deleted row by row.", clock(end))}
}

func findStoreFull(s *overview.Snapshot, at float64) *Alert {
	if s.Store.FreeBytes <= 0 || s.Store.DailyBytes <= 0 {
		return nil
	}
	days := s.Store.FreeBytes / s.Store.DailyBytes
	if float64(days) >= at {
		return nil
	}
	return &Alert{Severity: Ticket, Count: days, Action: Action{Label: "Make room, or keep bodies for a shorter time", Place: "retention.bodies"},
		Headline: fmt.Sprintf("The disk is full in %d days: the store grows by %d MB a day, and %d MB are free.", days, s.Store.DailyBytes>>20, s.Store.FreeBytes>>20)}
}

// Signatures.
const (
	latestRequests = 20  // that many tell a secret from a stranger
	mostFail       = 0.9 // of them
)

// broken reports whether nearly all of the latest requests of a source fail, and none was authentic since they began to. It
// returns how many fail because of their time.
func broken(o *overview.SourceState) (is bool, early, old int64) {
	n, failed := o.Latest.Received, o.Latest.Failed()
	is = n >= latestRequests && float64(failed) >= mostFail*float64(n) && !o.LastVerified.After(o.FailedSince)
	return is, o.Latest.Unverified["timestamp_future"], o.Latest.Unverified["timestamp_old"]
}

func findSecretRotated(_ *overview.Snapshot, o *overview.SourceState, _ float64) *Alert {
	is, early, old := broken(o)
	if failed := o.Latest.Failed(); !is || 2*(early+old) > failed {
		return nil
	}
	reason, most := "", int64(0)
	for r, n := range o.Latest.Unverified {
		if n > most || n == most && r < reason {
			reason, most = r, n
		}
	}
	return &Alert{Severity: Page, Since: o.FailedSince, Count: o.Latest.Failed(),
		Headline: fmt.Sprintf("No request to %s is authentic since %s (%s): its secret was changed at the sender, or something between changes the requests.", o.Name, clock(o.FailedSince), reason),
		Action:   Action{Label: "Add the new secret, and reload", Place: "sources." + o.Name + ".secrets", Command: "hookonce reload"}}
}

func findClockOff(_ *overview.Snapshot, o *overview.SourceState, _ float64) *Alert {
	is, early, old := broken(o)
	if failed := o.Latest.Failed(); !is || 2*(early+old) <= failed {
		return nil
	}
	way := "behind"
	if old > early {
		way = "ahead"
	}
	return &Alert{Severity: Page, Since: o.FailedSince, Count: early + old,
		Headline: fmt.Sprintf("The clock of this machine is %s of that of %s: its signed times are out of tolerance since %s.", way, o.Name, clock(o.FailedSince)),
		Action:   Action{Label: "Compare the clock, and set it", Command: "timedatectl status"}}
}

func findProbing(_ *overview.Snapshot, o *overview.SourceState, at float64) *Alert {
	failed := o.Hour.Failed()
	if is, _, _ := broken(o); is || float64(failed) < at || o.Hour.Verified == 0 {
		return nil
	}
	return &Alert{Severity: Info, Count: failed, Action: Action{Label: "See what was refused", Command: "hookonce refusals " + o.Name},
		Headline: fmt.Sprintf("Somebody sends requests to %s that are not authentic: %d in the last hour, beside %d that are.", o.Name, failed, o.Hour.Verified)}
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

func findSecretEnds(s *overview.Snapshot, o *overview.SourceState, at float64) *Alert {
	uses, total := secretUses(o)
	first := -1
	for i := range o.Secrets {
		secret := &o.Secrets[i]
		if secret.Until == nil || secret.Shared || uses[i] == 0 || secret.Until.Sub(s.At).Seconds() > at || !s.At.Before(*secret.Until) && uses[i] < total {
			continue
		}
		if first < 0 || secret.Until.Before(*o.Secrets[first].Until) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	name, until := fmt.Sprintf("Secret %d of %s", first+1, o.Name), *o.Secrets[first].Until
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
	return a
}

func findSecretUnused(s *overview.Snapshot, o *overview.SourceState, _ float64) *Alert {
	long := s.At.Add(-secretIdle)
	if len(o.Secrets) < 2 || o.SecretsSince.IsZero() || o.SecretsSince.After(long) {
		return nil
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
		return nil
	}
	return &Alert{Severity: Info, Count: total,
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

func findConflict(_ *overview.Snapshot, o *overview.SourceState, at float64) *Alert {
	if o.Hour.Conflicts == 0 || float64(o.Hour.Conflicts) < at {
		return nil
	}
	return &Alert{Severity: Ticket, Count: o.Hour.Conflicts,
		Action:   Action{Label: "Look at them", Command: "hookonce events list --source " + o.Name + " --seen conflict"},
		Headline: fmt.Sprintf("%s sent other content under a key that was stored before, %d times in the last hour: the first stands.", o.Name, o.Hour.Conflicts)}
}

func findCameAgain(_ *overview.Snapshot, o *overview.SourceState, _ float64) *Alert {
	if o.ReseenFor < sustained {
		return nil
	}
	in, span := o.Five, "five minutes"
	if !o.Usual.Exceeds(in.Events(), in.Reseen, deviations, leastReseen) {
		in, span = o.Hour, "hour"
	}
	a := &Alert{Severity: Ticket, Count: in.Reseen,
		Action: Action{Label: "Look at them", Command: "hookonce events list --source " + o.Name + " --seen duplicate"},
		Headline: fmt.Sprintf("%s sends events again: %d of %d in the last %s, where %.2g %% is usual. Copies are recognised and not delivered.",
			o.Name, in.Reseen, in.Events(), span, 100*o.Usual.Share)}
	if float64(in.Reseen) > pageTimes*math.Max(o.Usual.Share*float64(in.Events()), leastReseen) {
		a.Severity = Page
	}
	return a
}

func findOneAgain(_ *overview.Snapshot, o *overview.SourceState, at float64) *Alert {
	if o.Hour.Reseen == 0 || float64(o.Hour.Copies) < at*float64(o.Hour.Reseen) {
		return nil
	}
	return &Alert{Severity: Info, Count: o.Hour.Copies,
		Action:   Action{Label: "Look at it", Command: "hookonce events list --source " + o.Name + " --seen duplicate"},
		Headline: fmt.Sprintf("%s sends the same event again and again: %d copies of %d in the last hour.", o.Name, o.Hour.Copies, o.Hour.Reseen)}
}

func findSilent(s *overview.Snapshot, o *overview.SourceState, at float64) *Alert {
	if every := time.Duration(o.ExpectEvery) * time.Second; every > 0 {
		last := o.LastVerified
		if last.IsZero() {
			last = s.Since // nobody knows longer
		}
		if s.At.Sub(last) <= every {
			return nil
		}
		return &Alert{Severity: Ticket, Since: last, Count: int64(s.At.Sub(last) / every),
			Action:   Action{Label: "Look at the sender's own list of deliveries", Place: "the endpoint at " + o.Provider + " that posts to " + o.Path},
			Headline: fmt.Sprintf("%s is silent since %s: something is expected every %s.", o.Name, clock(last), every)}
	}
	if o.LastVerified.IsZero() || s.At.Sub(o.LastVerified) < leastSilent || o.Silence.Missing <= at {
		return nil
	}
	return &Alert{Severity: Ticket, Since: o.LastVerified, Count: int64(o.Silence.Missing),
		Action:   Action{Label: "Look at the sender's own list of deliveries", Place: "the endpoint at " + o.Provider + " that posts to " + o.Path},
		Headline: fmt.Sprintf("%s is silent since %s: in such a time there usually are %.0f minutes with events.", o.Name, clock(o.LastVerified), o.Silence.Missing)}
}

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
	leastPoisoned = 2 // in a group whose latest are of one type
)

func findFailing(_ *overview.Snapshot, d *overview.DestinationState, _ float64) *Alert {
	h := d.Health
	if h == nil || h.State != "ill" {
		return nil
	}
	a := &Alert{Severity: Page, Count: d.Backlog}
	if h.Since != nil {
		a.Since = *h.Since
	}
	kind, what := "", h.Error
	if len(d.Failures) > 0 {
		kind, what, a.Sample = d.Failures[0].Kind, d.Failures[0].Error, sample(&d.Failures[0])
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
	a.Headline = fmt.Sprintf("%s %s since %s: %s; %s.", d.Name, cause, clock(a.Since), what, waiting(d))
	return a
}

// sample is the latest event of a group of failures.
func sample(f *overview.Failure) *Sample {
	return &Sample{Source: f.Source, Event: f.Event, Type: f.Type, Error: f.Error}
}

// waiting says how much waits.
func waiting(d *overview.DestinationState) string {
	if d.Oldest == nil {
		return fmt.Sprintf("%d events wait", d.Backlog)
	}
	return fmt.Sprintf("%d events wait, the oldest since %s", d.Backlog, clock(*d.Oldest))
}

func findFirstFail(_ *overview.Snapshot, d *overview.DestinationState, at float64) *Alert {
	over := func(o overview.Outcomes, times float64) bool {
		return o.First >= leastFirst && o.FirstFailed >= leastFailed && float64(o.FirstFailed) > times*at*float64(o.First)
	}
	severity, in, span := Page, d.Hour, "hour"
	switch {
	case over(d.Hour, fastBurn) && d.Five.FirstFailed > 0 && float64(d.Five.FirstFailed) > fastBurn*at*float64(d.Five.First):
	case over(d.Six, slowBurn) && d.Half.FirstFailed > 0 && float64(d.Half.FirstFailed) > slowBurn*at*float64(d.Half.First):
		severity, in, span = Ticket, d.Six, "six hours"
	default:
		return nil
	}
	a := &Alert{Severity: severity, Count: in.FirstFailed,
		Action:   Action{Label: "See what failed", Command: "hookonce events list --destination " + d.Name + " --state failed"},
		Headline: fmt.Sprintf("%s fails %d of %d events at the first attempt in the last %s", d.Name, in.FirstFailed, in.First, span)}
	if len(d.Failures) > 0 {
		a.Headline += ": " + d.Failures[0].Error
		a.Since, a.Sample = d.Failures[0].Since, sample(&d.Failures[0])
	}
	a.Headline += "."
	return a
}

func findBlocked(_ *overview.Snapshot, d *overview.DestinationState, _ float64) *Alert {
	b := d.Blocked
	if b == nil {
		return nil
	}
	return &Alert{Severity: Ticket, Count: b.Waiting, Sample: &Sample{Event: b.Event},
		Action:   Action{Label: "Look at the event that fails", Command: fmt.Sprintf("hookonce events show %d", b.Event)},
		Headline: fmt.Sprintf("One event of %s fails at %s, and %d later ones of it wait for their turn.", b.Resource, d.Name, b.Waiting)}
}

// poisoned returns the group of deliveries, to a destination that takes others, whose latest events have one type. That
// older ones have it is not known, nor that none of the type is taken.
func poisoned(d *overview.DestinationState, least float64) *overview.Failure {
	for i := range d.Failures {
		if f := &d.Failures[i]; f.Type != "" && float64(f.Dead) >= least && d.Hour.Done > 0 {
			return f
		}
	}
	return nil
}

func findPoison(_ *overview.Snapshot, d *overview.DestinationState, at float64) *Alert {
	f := poisoned(d, at)
	if f == nil {
		return nil
	}
	return &Alert{Severity: Ticket, Since: f.Since, Count: f.Dead, Action: replay(d.Name, f), Sample: sample(f),
		Headline: fmt.Sprintf("%s takes events, but %s given up (%s); the last that failed so are all of type %s.", d.Name, deliveries(f.Dead), f.Error, f.Type)}
}

// replay is the action that has dead deliveries made again, once their cause is gone: all of a destination, or those of a
// group.
func replay(destination string, group *overview.Failure) Action {
	command := "hookonce events replay --destination " + destination + " --state dead"
	if group != nil && group.Kind != "" {
		command += " --error " + group.Kind
		if group.Status != 0 {
			command += fmt.Sprintf(" --status %d", group.Status)
		}
	}
	return Action{Label: "Replay them when the destination takes them", Method: "POST", Path: "/replay", Command: command + " --reason TEXT --dry-run"}
}

func findDied(_ *overview.Snapshot, d *overview.DestinationState, at float64) *Alert {
	if d.Dead == 0 {
		return nil
	}
	a := &Alert{Severity: Ticket, Count: d.Dead, Action: replay(d.Name, nil)}
	if float64(d.Hour.Dead) > at {
		a.Severity = Page
	}
	why := ""
	for i := range d.Failures {
		if d.Failures[i].Dead > 0 {
			why, a.Since, a.Sample = ": "+d.Failures[i].Error, d.Failures[i].Since, sample(&d.Failures[i])
			break
		}
	}
	a.Headline = fmt.Sprintf("%s given up at %s%s.", deliveries(d.Dead), d.Name, why)
	return a
}

func findPaused(s *overview.Snapshot, d *overview.DestinationState, at float64) *Alert {
	if d.Pause == nil {
		return nil
	}
	a := &Alert{Severity: Info, Since: d.Pause.At, Count: d.Backlog,
		Action: Action{Label: "Resume", Method: "POST", Path: "/destinations/" + url.PathEscape(d.Name) + "/resume",
			Command: "hookonce destinations resume " + d.Name + " --reason TEXT"},
		Headline: fmt.Sprintf("%s is paused since %s by %s (%s); %s.", d.Name, clock(d.Pause.At), d.Pause.By, d.Pause.Reason, waiting(d))}
	if s.At.Sub(d.Pause.At).Seconds() > at {
		a.Severity = Ticket
	}
	return a
}

func findBacklogOld(s *overview.Snapshot, d *overview.DestinationState, at float64) *Alert {
	if d.Oldest == nil || s.At.Sub(*d.Oldest).Seconds() <= at {
		return nil
	}
	drains := "it does not get shorter"
	if d.DrainsIn > 0 {
		drains = "it drains in " + time.Duration(d.DrainsIn*float64(time.Second)).Round(time.Second).String()
	}
	return &Alert{Severity: Page, Since: *d.Oldest, Count: d.Backlog,
		Action:   Action{Label: "Look at the destination", Command: "hookonce destinations list --all"},
		Headline: fmt.Sprintf("%s is behind: %s; %s.", d.Name, waiting(d), drains)}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	return address
}

// reconciledFor is how long the result of a reconciliation says how things are: it is made every night, or after an incident.
const reconciledFor = 7 * 24 * time.Hour

func findEffectsDoubled(s *overview.Snapshot, _ float64) (all []Alert) {
	for _, r := range s.Reconciled {
		named := func(a Alert) bool { return a.Subject == r.Table } // by another question about the same table
		if r.Doubled == 0 || s.At.Sub(r.At) > reconciledFor || slices.ContainsFunc(all, named) {
			continue
		}
		events, sample := "1 event has", ""
		if r.Doubled > 1 {
			events = fmt.Sprintf("%d events have", r.Doubled)
		}
		if r.Sample != "" {
			sample = ", such as " + r.Sample
		}
		all = append(all, Alert{Subject: r.Table, Severity: Page, Since: r.At, Count: r.Doubled, Action: Action{Label: "List them", Command: r.Command},
			Headline: fmt.Sprintf("In %s, %s more than one effect (%d too many)%s: hookonce reconcile found that at %s.", r.Table, events, r.Surplus, sample, clock(r.At))})
	}
	return all
}
