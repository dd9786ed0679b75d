package alert

import (
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// Unit is what a threshold counts.
type Unit string

// The units. A threshold that has none cannot be changed.
const (
	Number  Unit = "number"
	Seconds Unit = "seconds"
	Share   Unit = "share" // of all: 0.005 is one of 200
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

	find finder
}

// Limit returns the threshold in words, such as 15m or 0.5 %; nothing for a rule that has none.
func (r *Rule) Limit() string {
	switch r.Unit {
	case Seconds:
		return span(r.Threshold * float64(time.Second)).String()
	case Share:
		return strconv.FormatFloat(100*r.Threshold, 'g', 6, 64) + " %"
	case Number:
		return strconv.FormatFloat(r.Threshold, 'f', -1, 64)
	}
	return ""
}

// finder looks at all that a rule is about. It has each subject seen: how it stands and, if something is wrong, the alert.
type finder func(s *overview.Snapshot, at float64, see func(subject string, g gauge, a *Alert))

// The names of the rules.
const (
	storeAway       = "store_away"
	storeUnwritable = "store_unwritable"
	// Unrecorded is the rule of alerts that the store does not take. No snapshot shows it: who evaluates finds it.
	Unrecorded = "alerts_unrecorded"
	// FirstAttemptsFail is the rule whose threshold is a budget.
	FirstAttemptsFail = "first_attempts_fail"
	// Paused is the rule of what somebody wanted: it hides what is more severe, too.
	Paused         = "paused"
	storeSlow      = "store_slow"
	storeUnread    = "store_unread"
	cellAway       = "cell_away"
	sendersRefused = "senders_refused"
	secretRotated  = "secret_rotated"
	clockOff       = "clock_off"
	failing        = "destination_failing"
	blocked        = "group_blocked"
	poison         = "type_fails"
	died           = "died"
	backlogOld     = "backlog_old"
	conflict       = "conflict"
	cameAgain      = "came_again"
	oneAgain       = "one_again"
	silent         = "silent_source"
	cleanupLate    = "cleanup_late"
	partitionsEnd  = "partitions_end"
	storeFull      = "store_full"
	probing        = "probing"
	effectsDoubled = "effects_doubled"
	secretEnds     = "secret_ends"
	secretUnused   = "secret_unused"
	neverArrived   = "never_arrived"
	reconcileLate  = "reconcile_late"
	unrouted       = "unrouted"
)

// rules stand in the order in which one is told before another of the same severity.
var rules = []Rule{
	{Name: storeAway, When: "the store does not answer", Severity: Page, For: time.Minute, Local: true, find: ofStore(findStoreAway)},
	{Name: storeUnwritable, When: "the store answers and takes nothing", Severity: Page, For: time.Minute, Local: true, find: ofStore(findStoreUnwritable)},
	{Name: Unrecorded, When: "what is wrong cannot be put on record, though the store answers", Severity: Page, For: time.Minute, Local: true,
		find: func(*overview.Snapshot, float64, func(string, gauge, *Alert)) {}},
	{Name: storeSlow, When: "a commit takes as many milliseconds on average", Severity: Page, For: 2 * time.Minute, Threshold: slowCommit, Unit: Number, find: ofStore(findStoreSlow)},
	{Name: storeUnread, When: "the store does not answer a question, so that what goes by it is not known", Severity: Ticket, For: time.Minute, find: ofStore(findStoreUnread)},
	{Name: cellAway, When: "another cell does not answer, or has another map; a ticket if it owns no keys and is asked for none", Severity: Page, For: time.Minute, find: findCellAway},
	{Name: secretRotated, When: "nearly all of the last 20 requests to a source are not authentic, and none was since, for longer than it usually pauses", Severity: Page, find: ofSources(findSecretRotated)},
	{Name: clockOff, When: "the same, because of the times in them", Severity: Page, find: ofSources(findClockOff)},
	{Name: failing, When: "the breaker says that a destination is ill", Severity: Page, For: time.Minute, find: ofDestinations(findFailing)},
	{Name: blocked, When: "events of a resource wait for one that fails", Severity: Ticket, For: 5 * time.Minute, find: ofDestinations(findBlocked)},
	{Name: poison, When: "as many deliveries are dead whose latest events have one type, at a destination that takes others", Severity: Ticket, Threshold: leastPoisoned, Unit: Number, find: ofDestinations(findPoison)},
	{Name: Paused, When: "a destination is paused; a ticket once it is for longer than that", Severity: Ticket, Threshold: forgotten.Seconds(), Unit: Seconds, find: ofDestinations(findPaused)},
	{Name: FirstAttemptsFail, When: "the share of first attempts that fail is 14.4 times as large over an hour and five minutes (6 times over six hours and half an hour: a ticket), of at least 10, of which at least 3 failed", Severity: Page, For: time.Minute,
		Threshold: budget, Unit: Share, find: ofDestinations(findFirstFail)},
	{Name: sendersRefused, When: "senders are answered 503 for a fault of ours, or the queue is full", Severity: Page, For: time.Minute, find: ofStore(findSendersRefused)},
	{Name: effectsDoubled, When: "a run of hookonce reconcile effects found events that took effect more than once", Severity: Page, find: findEffectsDoubled},
	{Name: died, When: "deliveries are dead; a page if it became more than so many in an hour", Severity: Page, Threshold: manyDead, Unit: Number, find: ofDestinations(findDied)},
	{Name: backlogOld, When: "an open delivery waits longer: since its event was accepted or, if it was dead or done and is replayed, since it was due", Severity: Page, For: time.Minute, Threshold: oldBacklog.Seconds(), Unit: Seconds, find: ofDestinations(findBacklogOld)},
	{Name: conflict, When: "so many copies came with other content under the same key in an hour", Severity: Ticket, Threshold: 1, Unit: Number, find: ofSources(findConflict)},
	{Name: cameAgain, When: "more events came again than is usual, for three minutes; a page at ten times that", Severity: Page, find: ofSources(findCameAgain)},
	{Name: silent, When: "so many minutes with events are missing, by what the source usually sends; or nothing came for longer than its expect_every", Severity: Ticket,
		Threshold: sureSilence, Unit: Number, find: ofSources(findSilent)},
	{Name: unrouted, When: "no route of a source wanted any of its events of 24 hours, of which there were so many", Severity: Ticket, Threshold: leastUnrouted, Unit: Number, find: ofSources(findUnrouted)},
	{Name: neverArrived, When: "so many events that a sender lists never arrived, as gateways found: until they are on record, dismissed, or gone from the list", Severity: Ticket, Threshold: 1, Unit: Number, find: ofSources(findNeverArrived)},
	{Name: reconcileLate, When: "a source was not compared with its sender's list for so many periods and a quarter of an hour, and is not being compared, or for a day even so; or the last comparison failed", Severity: Ticket, For: 15 * time.Minute,
		Threshold: latePeriods, Unit: Number, find: ofSources(findReconcileLate)},
	{Name: secretEnds, When: "requests are signed with a secret that ends sooner; or, all of them, with one that has ended", Severity: Ticket, For: 10 * time.Minute,
		Threshold: secretSoon.Seconds(), Unit: Seconds, find: ofSources(findSecretEnds)},
	{Name: cleanupLate, When: "the cleanup has not come to an end for longer", Severity: Ticket, Threshold: cleanupAfter.Seconds(), Unit: Seconds, find: ofStore(findCleanupLate)},
	{Name: partitionsEnd, When: "the last partition ends sooner", Severity: Ticket, Threshold: partitionGap.Seconds(), Unit: Seconds, find: ofStore(findPartitionsEnd)},
	{Name: storeFull, When: "the disk is full in fewer days, as the store grew in the last seven", Severity: Ticket, For: 10 * time.Minute, Threshold: fullSoon, Unit: Number, find: ofStore(findStoreFull)},
	{Name: oneAgain, When: "one event came so many times in an hour", Severity: Info, Threshold: manyCopies, Unit: Number, find: ofSources(findOneAgain)},
	{Name: probing, When: "so many requests in an hour are not authentic, beside those that are", Severity: Info, Threshold: latestRequests, Unit: Number, find: ofSources(findProbing)},
	{Name: secretUnused, When: "one of several secrets verified nothing for seven days, while another one did", Severity: Info, find: ofSources(findSecretUnused)},
}

// needs are the parts of a snapshot that rules go by. Without one of them a rule is blind: it may
// find nothing, whatever holds.
var needs = map[string][]string{
	secretRotated:     {overview.PartMinutes},
	clockOff:          {overview.PartMinutes},
	failing:           {overview.PartDestinations},
	blocked:           {overview.PartDestinations, overview.PartOpen, overview.PartFailures},
	poison:            {overview.PartOpen, overview.PartFailures, overview.PartMinutes},
	Paused:            {overview.PartDestinations},
	FirstAttemptsFail: {overview.PartDestinations, overview.PartMinutes, overview.PartHours},
	sendersRefused:    {overview.PartMinutes},
	effectsDoubled:    {overview.PartReconciliations},
	died:              {overview.PartOpen},
	backlogOld:        {overview.PartOpen},
	conflict:          {overview.PartMinutes},
	cameAgain:         {overview.PartMinutes, overview.PartHours},
	silent:            {overview.PartHours, overview.PartLast},
	unrouted:          {overview.PartMinutes, overview.PartHours},
	neverArrived:      {overview.PartMissing},
	reconcileLate:     {overview.PartMarks},
	secretEnds:        {overview.PartMinutes, overview.PartHours},
	storeFull:         {overview.PartRows, overview.PartHours},
	oneAgain:          {overview.PartMinutes},
	probing:           {overview.PartMinutes},
	secretUnused:      {overview.PartHours},
}

// unread reports whether the store did not answer one of the parts.
func unread(s *overview.Snapshot, parts ...string) bool {
	return slices.ContainsFunc(s.Parts, func(p overview.Part) bool { return p.Unanswered(s.At) && slices.Contains(parts, p.Name) })
}

// Blind returns the rules that are on and blind: that they find nothing does not say that nothing
// is wrong.
func (c Settings) Blind(s *overview.Snapshot) (blind []Rule) {
	for _, r := range c.Rules() {
		if unread(s, needs[r.Name]...) {
			blind = append(blind, r)
		}
	}
	return blind
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

func ofStore(find func(*overview.Snapshot, float64) (gauge, *Alert)) finder {
	return func(s *overview.Snapshot, at float64, see func(string, gauge, *Alert)) {
		g, a := find(s, at)
		see("", g, a)
	}
}

func ofSources(find func(*overview.Snapshot, *overview.SourceState, float64) (gauge, *Alert)) finder {
	return func(s *overview.Snapshot, at float64, see func(string, gauge, *Alert)) {
		for i := range s.Sources {
			g, a := find(s, &s.Sources[i], at)
			see(s.Sources[i].Name, g, a)
		}
	}
}

func ofDestinations(find func(*overview.Snapshot, *overview.DestinationState, float64) (gauge, *Alert)) finder {
	return func(s *overview.Snapshot, at float64, see func(string, gauge, *Alert)) {
		for i := range s.Destinations {
			g, a := find(s, &s.Destinations[i], at)
			see(s.Destinations[i].Name, g, a)
		}
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
