package alerting

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/journal"
)

// Policy says when alerts move, and when they are told. The zero value of a duration means its default.
type Policy struct {
	// KeepFiring is how long an alert goes on to fire after it held last. Default 5 minutes.
	KeepFiring time.Duration
	// RepeatPage and RepeatTicket are how long after it was told an alert is told again that nobody acknowledged. Default 4 and
	// 24 hours.
	RepeatPage, RepeatTicket time.Duration
}

// The defaults of a [Policy].
const (
	DefaultKeepFiring   = 5 * time.Minute
	DefaultRepeatPage   = 4 * time.Hour
	DefaultRepeatTicket = 24 * time.Hour
)

// lapse is for how long an alert that is pending may be missing: gateways take turns, and not each sees what the others do.
const lapse = 2 * Every

// rewrite is how old what an alert says is at least before it is written again.
const rewrite = Every - 5*time.Second

// leftover is for how long after its end an alert still hides what it left behind: what is counted over five minutes goes back up
// to six, and is looked at a moment later.
const leftover = 2 * time.Minute

// ahead is how far in the future, by the clock of who evaluates, what another gateway saw may be.
const ahead = Every

// evaluation moves alerts: what is remembered, and what holds now, become what changes.
type evaluation struct {
	Policy
	rules     []alert.Rule // that are on
	blind     []alert.Rule // those of them of which nobody knows whether they hold
	now       time.Time
	name      string // of the installation
	gateway   string
	addresses []Address
	key       func(fingerprint string, a *journal.Alert, s State, now time.Time) string
	book      *journal.AlertBook
	local     []alert.Alert // what was wrong with the store, and hides what it left behind
	changes   journal.AlertChanges
}

// advance moves all alerts of the book by what holds now. What fires goes on while nobody knows
// whether it holds: that a rule which is blind finds nothing is no end. Gateways that see what this
// one does not see the end.
func (e *evaluation) advance(holds []alert.Alert) {
	seen := map[journal.AlertID]bool{}
	for i := range holds {
		id := journal.AlertID{Rule: holds[i].Rule, Subject: holds[i].Subject}
		if !seen[id] {
			seen[id] = true
			e.hold(id, &holds[i])
		}
	}
	for i := range e.book.Alerts {
		if a := &e.book.Alerts[i]; !seen[a.AlertID] && !(a.State == journal.AlertFiring && named(e.blind, a.Rule) != nil) {
			e.miss(a)
		}
	}
}

// correct takes back what is remembered of a future, which was written by a clock that has been set since: until it came an alert
// would not move.
func (e *evaluation) correct(book *journal.AlertBook) {
	for i := range book.Alerts {
		a, wrong := &book.Alerts[i], false
		for _, at := range []*time.Time{&a.Since, &a.Seen, &a.Told} {
			if at.Sub(e.now) > ahead {
				*at, wrong = e.now, true
			}
		}
		if wrong {
			e.changes.Put = append(e.changes.Put, *a)
		}
	}
}

// attend takes over what people did at other gateways about alerts of this one.
func (e *evaluation) attend(elsewhere []journal.Alert) {
	for i := range elsewhere {
		if a := e.book.Find(elsewhere[i].AlertID); a != nil && attend(a, &elsewhere[i]) {
			e.changes.Put = append(e.changes.Put, *a)
		}
	}
}

// attend has an alert that fires, and that nobody acknowledged, acknowledged as another gateway knows it of the same trouble. It
// reports whether anything changed.
func attend(a, elsewhere *journal.Alert) bool {
	if a.State != journal.AlertFiring || elsewhere.State != journal.AlertFiring || a.AckBy != "" || elsewhere.AckBy == "" ||
		a.Fired.Sub(elsewhere.Fired).Abs() >= window {
		return false
	}
	a.AckBy, a.AckReason, a.AckAt = elsewhere.AckBy, elsewhere.AckReason, elsewhere.AckAt
	return true
}

// saying is what an alert says, and since when it is less severe than somebody was told. Zero: it
// is not.
type saying struct {
	alert.Alert
	Eased time.Time `json:"eased,omitzero"`
}

// eased returns since when an alert is less severe than somebody was told, which it was since a
// time or, if that is zero, was not. What a pause hides is not less severe for that.
func (e *evaluation) eased(a *journal.Alert, severity alert.Severity, was time.Time) time.Time {
	switch {
	case a.State != journal.AlertFiring || a.Told.IsZero():
		return time.Time{}
	case severity == alert.Info:
		return was
	case !toldAs(a)[0].Above(severity):
		return time.Time{}
	case was.IsZero():
		return e.now
	}
	return was
}

// hold moves an alert that holds.
func (e *evaluation) hold(id journal.AlertID, says *alert.Alert) {
	a := journal.Alert{AlertID: id, State: journal.AlertResolved}
	if known := e.book.Find(id); known != nil {
		a = *known
	}
	stale := e.now.Sub(a.Seen) >= rewrite
	var was saying
	_ = json.Unmarshal(a.Body, &was) // what cannot be read says nothing
	is := saying{*says, e.eased(&a, says.Severity, was.Eased)}
	body, err := json.Marshal(is)
	if err != nil {
		body = a.Body // an alert is made of texts and numbers, which can always be written
	}
	cause := says.Cause
	if cause == "" && a.State != journal.AlertResolved && e.hides(a.Cause, says.Severity) {
		cause = a.Cause
	}
	if cause == "" && says.Lingers() { // what the store was away for is seen first when it is back
		cause = alert.Cause(says, e.local)
	}
	a.Seen, a.Body, a.Severity, a.Cause = e.now, body, string(says.Severity), cause
	moved := false
	if a.State == journal.AlertResolved {
		a.State, a.Since, a.Fired, a.Told, a.ToldAs, moved = journal.AlertPending, e.now, time.Time{}, time.Time{}, "", true
	}
	if a.State == journal.AlertPending && e.now.Sub(a.Since) >= e.lasts(id.Rule) {
		a.State, a.Since, a.Fired, moved = journal.AlertFiring, e.now, e.now, true
		a.Told, a.ToldAs, a.AckBy, a.AckReason, a.AckAt = time.Time{}, "", "", "", time.Time{}
		a.Transition++
		e.record(&a, journal.AlertFired, says.Headline)
	}
	if a.State == journal.AlertFiring {
		// For a moment two gateways may see different things.
		worse := is.Eased.IsZero() && !was.Eased.IsZero() && e.now.Sub(was.Eased) >= orDefault(e.KeepFiring, DefaultKeepFiring)
		moved = e.tellLasting(&a, says, worse) || moved
		if worse && a.AckBy != "" { // it is hidden, or was told not long ago: it is told later, as what nobody acknowledged
			e.record(&a, journal.AlertEscalated, says.Headline+release(&a))
			moved = true
		}
	}
	if moved || stale {
		e.changes.Put = append(e.changes.Put, a)
	}
}

// hides reports whether what an alert followed from goes on to fire, so that what it leaves behind has as long to go. See [alert.Cause] for
// what hides what.
func (e *evaluation) hides(cause string, severity alert.Severity) bool {
	i := slices.IndexFunc(e.book.Alerts, func(a journal.Alert) bool { return a.Fingerprint() == cause })
	if i < 0 || !e.explains(&e.book.Alerts[i]) {
		return false
	}
	c := &e.book.Alerts[i]
	return c.Rule == alert.Paused || !severity.Above(alert.Severity(c.Severity))
}

// explains reports whether an alert fires, or did a moment ago.
func (e *evaluation) explains(a *journal.Alert) bool {
	return a.State == journal.AlertFiring || a.State == journal.AlertResolved && !a.Fired.IsZero() && e.now.Sub(a.Since) < leftover
}

// aboutTheStore returns what explains others and is wrong with the store, here or at another gateway.
func (e *evaluation) aboutTheStore(books ...*journal.AlertBook) (all []alert.Alert) {
	for _, b := range books {
		for i := range b.Alerts {
			if a := &b.Alerts[i]; isLocal[a.Rule] && e.explains(a) {
				all = append(all, alert.Alert{Rule: a.Rule, Subject: a.Subject, Severity: alert.Severity(a.Severity)})
			}
		}
	}
	return all
}

// lasts is how long an alert of a rule holds before it fires.
func (e *evaluation) lasts(rule string) time.Duration {
	if r := named(e.rules, rule); r != nil {
		return r.For
	}
	return 0
}

// named returns the rule of a name, or nil.
func named(rules []alert.Rule, name string) *alert.Rule {
	if i := slices.IndexFunc(rules, func(r alert.Rule) bool { return r.Name == name }); i >= 0 {
		return &rules[i]
	}
	return nil
}

// release ends an acknowledgement, which is of something less severe, and returns what is on record
// of that.
func release(a *journal.Alert) (text string) {
	if a.AckBy != "" {
		text = " (no longer acknowledged by " + a.AckBy + ")"
	}
	a.AckBy, a.AckReason, a.AckAt = "", "", time.Time{}
	return text
}

// tellLasting tells of an alert that fires, if it is time to, and reports whether it did. Worse
// says that it is as severe again as somebody was told, after it had eased.
func (e *evaluation) tellLasting(a *journal.Alert, says *alert.Alert, worse bool) bool {
	severity := alert.Severity(a.Severity)
	if severity == alert.Info || a.Cause != "" || e.book.Silenced(a.AlertID, e.now) != nil {
		return false
	}
	repeat := orDefault(e.RepeatTicket, DefaultRepeatTicket)
	if severity == alert.Page {
		repeat = orDefault(e.RepeatPage, DefaultRepeatPage)
	}
	state, first, long := Firing, a.Told.IsZero(), e.now.Sub(a.Told) >= repeat
	event := journal.AlertEvent("")
	switch {
	case first:
	case severity.Above(toldAs(a)[0]), worse && long:
		event = journal.AlertEscalated
	case a.AckBy == "" && long:
		state, event = Repeat, journal.AlertRepeated
	default:
		return false
	}
	to := e.whoHears(severity)
	if len(to) == 0 {
		return false
	}
	if !first {
		a.Transition++
		text := says.Headline
		if event == journal.AlertEscalated {
			text += release(a)
		}
		e.record(a, event, text)
	}
	a.Told = e.now
	if as := toldAs(a); first {
		a.ToldAs = string(severity)
	} else if severity.Above(as[0]) {
		a.ToldAs = string(severity) + "," + a.ToldAs
	} else if !slices.Contains(as, severity) {
		a.ToldAs += "," + string(severity)
	}
	e.tell(a, says, state, to)
	return true
}

// miss moves an alert that does not hold.
func (e *evaluation) miss(a *journal.Alert) {
	gone := *a
	switch {
	case a.State == journal.AlertPending && e.now.Sub(a.Seen) > lapse:
	case a.State == journal.AlertFiring && e.now.Sub(a.Seen) >= orDefault(e.KeepFiring, DefaultKeepFiring):
		gone.Transition++
	default:
		return
	}
	gone.State, gone.Since = journal.AlertResolved, e.now
	if a.State == journal.AlertFiring {
		var says alert.Alert
		_ = json.Unmarshal(a.Body, &says) // what cannot be read says nothing
		e.record(&gone, journal.AlertEnded, says.Headline)
		as := toldAs(a)
		if to := e.whoHears(as...); !a.Told.IsZero() && len(to) > 0 {
			says.Severity = as[0]
			e.tell(&gone, &says, Resolved, to)
		}
	}
	gone.AckBy, gone.AckReason, gone.AckAt = "", "", time.Time{}
	e.changes.Put = append(e.changes.Put, gone)
}

// toldAs returns the severities that were told of an alert, the highest first; one that is empty if none was.
func toldAs(a *journal.Alert) (all []alert.Severity) {
	for _, s := range strings.Split(a.ToldAs, ",") {
		all = append(all, alert.Severity(s))
	}
	return all
}

// whoHears returns the addresses that are told of any of the severities.
func (e *evaluation) whoHears(any ...alert.Severity) (names []string) {
	for _, to := range e.addresses {
		if slices.ContainsFunc(to.Severities, func(s alert.Severity) bool { return slices.Contains(any, s) }) {
			names = append(names, to.Name)
		}
	}
	return names
}

func (e *evaluation) record(a *journal.Alert, event journal.AlertEvent, text string) {
	e.changes.Records = append(e.changes.Records, journal.AlertRecord{
		AlertID: a.AlertID, At: e.now, Event: event, Transition: a.Transition, Severity: a.Severity, Text: text,
	})
}

// tell has addresses told.
func (e *evaluation) tell(a *journal.Alert, says *alert.Alert, state State, to []string) {
	fingerprint := Fingerprint(e.name, a.Fingerprint())
	n := Notification{
		Key: e.key(fingerprint, a, state, e.now), Fingerprint: fingerprint, Installation: e.name, Transition: a.Transition, Rule: a.Rule, Subject: a.Subject,
		Severity: says.Severity, State: state, Headline: says.Headline, At: e.now.UTC(), Fired: a.Fired.UTC(), Since: says.Since.UTC(),
		Count: says.Count, Sample: says.Sample, Action: says.Action, Gateway: e.gateway,
	}
	body, err := json.Marshal(n)
	if err != nil {
		return // see hold
	}
	for _, name := range to {
		e.changes.Notices = append(e.changes.Notices, journal.Notice{
			AlertID: a.AlertID, Transition: a.Transition, Address: name, Due: e.now, Since: e.now, Body: body,
		})
	}
}

// numbered is the key of what a store numbers. Numbers begin again when an alert was forgotten, or the store is another one; the
// moment at which it fired does not come again.
func numbered(fingerprint string, a *journal.Alert, _ State, _ time.Time) string {
	return fmt.Sprintf("%s@%s#%d", fingerprint, a.Fired.UTC().Format("20060102T150405.000000Z"), a.Transition)
}

// windowed is the key of what no store numbers: gateways that see the same within the same minutes give it the same key. The
// window is not longer than an alert goes on to fire, so that what fires anew has another one.
func windowed(fingerprint string, a *journal.Alert, state State, now time.Time) string {
	key := fmt.Sprintf("%s@%s/%s", fingerprint, a.Fired.UTC().Truncate(window).Format("20060102T1504Z"), state)
	if state == Repeat {
		key += "/" + now.UTC().Truncate(time.Hour).Format("20060102T15Z")
	}
	return key
}

// window is how long what fires has the same key.
const window = DefaultKeepFiring

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
