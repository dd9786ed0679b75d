// Package alert says what is wrong, in words: rules look at a snapshot, each for one kind of trouble, and a verdict
// puts causes before what follows from them.
//
// All of it is pure: the same snapshot has the same alerts.
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

// Severity says who has to know of an alert, and when.
type Severity string

// The severities.
const (
	Page   Severity = "page"   // somebody at once
	Ticket Severity = "ticket" // somebody today
	Info   Severity = "info"   // whoever looks
)

// Above reports whether it is more severe than another one.
func (s Severity) Above(other Severity) bool { return s.rank() < other.rank() }

func (s Severity) rank() int { return map[Severity]int{Page: 0, Ticket: 1, Info: 2}[s] }

// Action is the next step: a request to the API where the gateway can mend it, else a command to type or the place to
// change something.
type Action struct {
	Label   string `json:"label"`
	Method  string `json:"method,omitempty" doc:"Of a request that mends it."`
	Path    string `json:"path,omitempty" doc:"Below /api/v1."`
	Command string `json:"command,omitempty" doc:"To type in a terminal."`
	Place   string `json:"place,omitempty" doc:"What to change, where neither helps."`
}

// readers are the commands that people are told to type which read the configuration. The others ask a gateway.
var readers = []string{"hookonce doctor", "hookonce config show", "hookonce cells status", "hookonce reconcile", "hookonce reconcile effects"}

// Typed returns a command as it is to be typed where the configuration is in a file that is not found by itself
// ([overview.Snapshot.Config]; empty: it is): one that reads the configuration would look at nothing, and find nothing wrong.
func Typed(command, config string) string {
	if name, _, _ := strings.Cut(command, " -"); config == "" || !slices.Contains(readers, name) {
		return command
	}
	return command + " --config " + config
}

// Alert is one thing that is wrong.
type Alert struct {
	Rule     string    `json:"rule"`
	Subject  string    `json:"subject,omitempty" doc:"The source, destination or cell that it is about."`
	Severity Severity  `json:"severity" enum:"page,ticket,info"`
	Headline string    `json:"headline" doc:"A sentence that names the cause."`
	Since    time.Time `json:"since,omitzero" doc:"Missing: that is not known."`
	Count    int64     `json:"count" doc:"Of what the headline names: events, requests or deliveries."`
	Action   Action    `json:"action"`
	Sample   *Sample   `json:"sample,omitempty" doc:"An event that it is about."`
	Cause    string    `json:"cause,omitempty" doc:"The fingerprint of the alert that this one follows from."`
}

// Sample is one of the events that an alert is about.
type Sample struct {
	Source string `json:"source,omitempty"`
	Event  int64  `json:"event,string"`
	Type   string `json:"type,omitempty"`
	Error  string `json:"error,omitempty" doc:"What it last failed with."`
}

// Fingerprint tells alerts apart: two with the same one are the same alert.
func (a *Alert) Fingerprint() string { return a.Rule + "/" + a.Subject }

// Answer is yes or no, and a sentence.
type Answer struct {
	Yes  bool   `json:"yes"`
	Text string `json:"text"`
}

// Verdict is what somebody who was just woken up wants to know.
type Verdict struct {
	Healthy  bool    `json:"healthy" doc:"Nothing pages, and the store answered all that a page goes by."`
	Headline string  `json:"headline"`
	Refused  Answer  `json:"refused" doc:"Are senders refused?"`
	Lost     Answer  `json:"lost" doc:"Is anything lost?"`
	Doubled  Answer  `json:"doubled" doc:"Is anything doubled?"`
	Alerts   []Alert `json:"alerts" nullable:"false" doc:"The worst first, and causes before what follows from them."`
}

// Settings change rules, by their names. A rule that is not in it is as [Rules] has it.
type Settings map[string]Setting

// Setting changes one rule.
type Setting struct {
	// Off is set if it finds nothing.
	Off bool
	// For, unless it is nil, takes the place of [Rule.For].
	For *time.Duration
	// Threshold, unless it is nil, takes the place of [Rule.Threshold].
	Threshold *float64
}

// Rules returns the rules as they hold, without those that are off.
func (c Settings) Rules() []Rule {
	all := make([]Rule, 0, len(rules))
	for _, r := range rules {
		if !c[r.Name].Off {
			all = append(all, c.change(r))
		}
	}
	return all
}

// change returns a rule as it holds where it is on.
func (c Settings) change(r Rule) Rule {
	own := c[r.Name]
	if own.For != nil {
		r.For = *own.For
	}
	if own.Threshold != nil {
		r.Threshold = *own.Threshold
	}
	return r
}

// Judge says what is wrong with what a snapshot shows, by the rules as they are.
func Judge(s *overview.Snapshot) Verdict { return Settings{}.Judge(s) }

// Judge says what is wrong with what a snapshot shows. That a rule is off hides its alerts, and changes nothing in the answers to
// whether senders are refused and something is lost or doubled.
func (c Settings) Judge(s *overview.Snapshot) Verdict {
	var all, off []Alert
	order := map[string]int{}
	for i, r := range rules {
		order[r.Name] = i
		found := &all
		if c[r.Name].Off {
			found = &off
		}
		r = c.change(r)
		r.find(s, r.Threshold, func(subject string, _ gauge, a *Alert) {
			if a != nil {
				a.Rule, a.Subject, a.Action.Command = r.Name, subject, Typed(a.Action.Command, s.Config)
				*found = append(*found, *a)
			}
		})
	}
	explain(all)
	slices.SortStableFunc(all, func(a, b Alert) int {
		return cmp.Or(consequence(a)-consequence(b), a.Severity.rank()-b.Severity.rank(), order[a.Rule]-order[b.Rule], cmp.Compare(b.Count, a.Count))
	})
	v := Verdict{Alerts: slices.Clip(all), Refused: refused(s, slices.Concat(all, off)), Lost: lost(s), Doubled: doubled(s)}
	blind := c.Blind(s)
	v.Healthy = !slices.ContainsFunc(all, func(a Alert) bool { return a.Severity == Page }) && !slices.ContainsFunc(blind, func(r Rule) bool { return r.Severity == Page })
	v.Headline = "Everything is well: nothing waits longer than it should, and no sender is refused."
	if len(blind) > 0 {
		v.Headline = "Nothing is known to be wrong, but the store does not answer all that it is asked for."
	}
	switch {
	case v.Refused.Yes:
		v.Headline = "Senders are refused, and no rule that is on tells of it."
	case len(blind) == 0 && notTaken(s) != "":
		v.Headline = "Nothing waits longer than it should, but not all requests are taken."
	}
	if i := slices.IndexFunc(all, func(a Alert) bool { return a.Severity != Info }); i >= 0 {
		v.Headline = all[i].Headline
		if others := len(slices.DeleteFunc(slices.Clone(all), func(a Alert) bool { return a.Cause != "" || a.Severity == Info })) - 1; others > 0 {
			v.Headline += fmt.Sprintf(" %d more below.", others)
		}
	}
	if v.Alerts == nil {
		v.Alerts = []Alert{}
	}
	return v
}

func consequence(a Alert) int {
	if a.Cause != "" {
		return 1
	}
	return 0
}

// explain names the cause of each alert that follows from another one. What a pause explains somebody wanted.
func explain(all []Alert) {
	for i := range all {
		a := &all[i]
		if a.Cause = Cause(a, all); a.Cause != "" && a.Cause == (&Alert{Rule: Paused, Subject: a.Subject}).Fingerprint() {
			a.Severity = Info
		}
	}
}

// Lingers reports whether what an alert tells of may be over: it counts the last minutes, or what has waited since. A full queue is
// there now.
func (a *Alert) Lingers() bool {
	return a.Rule == backlogOld || a.Rule == sendersRefused && a.Since.IsZero()
}

// Cause returns the fingerprint of the alert, of some, from which another one follows; nothing if it follows from none. A store
// that is away explains all that waits and all that is refused; a destination that is paused or ill explains its backlog and its
// failures. What is less severe explains nothing, or nobody would be paged: but for a pause, which somebody wanted.
func Cause(a *Alert, of []Alert) (cause string) {
	find := func(least Severity, is func(*Alert) bool) string {
		if i := slices.IndexFunc(of, func(b Alert) bool { return is(&b) && !least.Above(b.Severity) }); i >= 0 {
			return of[i].Fingerprint()
		}
		return ""
	}
	atLeast := func(least Severity, rule, subject string) string {
		return find(least, func(b *Alert) bool { return b.Rule == rule && b.Subject == subject })
	}
	at := func(rule, subject string) string { return atLeast(a.Severity, rule, subject) }
	store := func() string { return cmp.Or(atLeast(Page, storeAway, ""), atLeast(Page, storeUnwritable, "")) }
	cell := func() string { return find(Page, func(b *Alert) bool { return b.Rule == cellAway }) }
	pause := func() string { return atLeast(Info, Paused, a.Subject) }
	switch a.Rule {
	case sendersRefused:
		cause = cmp.Or(store(), at(storeSlow, ""), cell())
	case storeSlow, storeUnread, cleanupLate:
		cause = cmp.Or(store(), at(storeSlow, ""))
	case backlogOld, FirstAttemptsFail, died, poison, blocked:
		cause = cmp.Or(store(), pause(), at(failing, a.Subject))
		if cause == "" && a.Rule == backlogOld {
			cause = at(storeSlow, "")
		}
		if cause == "" && a.Rule == died {
			cause = at(poison, a.Subject)
		}
		if cause == "" && a.Rule == FirstAttemptsFail {
			cause = cmp.Or(at(poison, a.Subject), at(blocked, a.Subject))
		}
	case failing:
		if store() == "" {
			cause = pause()
		}
	case reconcileLate:
		cause = store()
	case silent, neverArrived:
		cause = cmp.Or(at(secretRotated, a.Subject), at(clockOff, a.Subject), at(sendersRefused, ""))
	case cameAgain, oneAgain:
		cause = cmp.Or(at(sendersRefused, ""), at(conflict, a.Subject), cell()) // what one cell keeps from a try comes again here
		if a.Rule == oneAgain && cause == "" {
			cause = at(cameAgain, a.Subject)
		}
	}
	if cause == a.Fingerprint() {
		return ""
	}
	return cause
}

// refused answers whether senders are refused. What strangers can cause is no yes, or they could have it say so at will; but it is
// told, since the sender may be among them.
func refused(s *overview.Snapshot, all []Alert) Answer {
	var names []string
	for _, a := range all {
		switch a.Rule {
		case storeAway, storeUnwritable, sendersRefused:
			return Answer{true, "Yes: senders are answered 503 and asked to come again" + unstored(s)}
		case cellAway:
			if a.Severity != Page { // it owns nothing
				continue
			}
			return Answer{true, "Yes: senders of events that the cell " + a.Subject + " owns are answered 503 and asked to come again" + unstored(s)}
		case secretRotated, clockOff:
			names = append(names, a.Subject)
		}
	}
	if len(names) > 0 {
		return Answer{true, "Yes: requests to " + strings.Join(names, ", ") + " are not accepted as authentic."}
	}
	waits, n := []string{}, int64(0)
	for i := range s.Sources {
		if of := s.Sources[i].Five.NotTaken[overview.Unanswered]; of > 0 {
			waits, n = append(waits, s.Sources[i].Name), n+of
		}
	}
	if n > 0 {
		return Answer{true, fmt.Sprintf("Yes: senders were asked to come again after %s to %s in the last five minutes, because the application did not answer in time, or could not handle what came. It is stored.", requests(n), strings.Join(waits, ", "))}
	}
	others := unread(s, overview.PartMinutes)
	switch not := notTaken(s); {
	case not != "" && others:
		return Answer{false, "No, but " + not + " The store does not say how others answer."}
	case not != "":
		return Answer{false, "No, but " + not}
	case others:
		return Answer{false, "No, as far as this gateway knows: the store does not say how others answer."}
	}
	return Answer{false, "No: senders are answered."}
}

// unstored ends a sentence about what is not acknowledged.
func unstored(s *overview.Snapshot) string {
	if s.Store.Unrecorded > 0 || slices.ContainsFunc(s.Sources, func(o overview.SourceState) bool { return o.Open }) {
		return "." // what is delivered past the store is acknowledged
	}
	return "; nothing is acknowledged that is not stored."
}

// notTaken says which requests were not taken in the last five minutes, as it is configured; nothing if there were none.
func notTaken(s *overview.Snapshot) string {
	var all []string
	var total int64
	source := "SOURCE"
	for i := range s.Sources {
		o, n := &s.Sources[i], int64(0)
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(o.Five.NotTaken)) {
			if reason != overview.Unanswered {
				why, n = append(why, reason), n+o.Five.NotTaken[reason]
			}
		}
		if n > 0 {
			all, total, source = append(all, fmt.Sprintf("%s (%s)", o.Name, strings.Join(why, ", "))), total+n, o.Name
		}
	}
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		source = "SOURCE"
	}
	return fmt.Sprintf("the gateway did not take %s to %s in the last five minutes: hookonce refusals %s.", requests(total), strings.Join(all, ", "), source)
}

// lost answers whether anything is lost.
func lost(s *overview.Snapshot) Answer {
	var dead, ours, missing, conflicts int64
	for i := range s.Destinations {
		dead += s.Destinations[i].Dead
	}
	for i := range s.Sources {
		ours += s.Sources[i].Hour.Ours
		conflicts += s.Sources[i].Hour.Conflicts
		missing += lostOf(&s.Sources[i])
	}
	var but []string // what is worst first
	if n := s.Store.Unrecorded; n > 0 {
		but = append(but, fmt.Sprintf("%d events were delivered past the store, and are in memory alone until it is back", n))
	}
	if conflicts > 0 {
		but = append(but, fmt.Sprintf("other content came under a key on record %s in the last hour: it was acknowledged, and is not kept (hookonce events list --seen conflict)", times(conflicts)))
	}
	if dead > 0 {
		but = append(but, fmt.Sprintf("%s given up: they are kept until somebody replays them", deliveries(dead)))
	}
	if missing > 0 {
		but = append(but, fmt.Sprintf("%d events that senders made never arrived: they are in the senders' lists", missing))
	}
	var unknown []string
	if unread(s, overview.PartOpen) {
		unknown = append(unknown, "what is given up by now")
	}
	if unread(s, overview.PartMissing) {
		unknown = append(unknown, "what never arrived")
	}
	if len(unknown) > 0 && s.Store.Away == nil {
		but = append(but, "the store does not say "+strings.Join(unknown, " and "))
	}
	switch {
	case len(but) > 0:
		return Answer{false, "No, but " + strings.Join(but, "; ") + "."}
	case ours > 0 || s.Store.Away != nil || s.Store.Unwritable != nil:
		return Answer{false, "No: what was not acknowledged is with its senders, who try again for as long as they do."}
	}
	return Answer{false, "No: all that was acknowledged is stored."}
}

// doubled answers whether anything is doubled.
func doubled(s *overview.Snapshot) Answer {
	var copies, unkeyed int64
	for i := range s.Sources {
		h := &s.Sources[i].Hour
		copies, unkeyed = copies+h.Copies, unkeyed+h.Unkeyed
	}
	var found *Alert
	findEffectsDoubled(s, 0, func(_ string, _ gauge, a *Alert) { found = cmp.Or(found, a) })
	if found != nil {
		return Answer{true, "Yes. " + found.Headline}
	}
	text := fmt.Sprintf("No: %d copies were recognised in the last hour.", copies)
	switch {
	case unread(s, overview.PartReconciliations):
		text = fmt.Sprintf("Not known: the store does not say what hookonce reconcile effects found. %d copies were recognised in the last hour.", copies)
	case unkeyed > 0:
		text = fmt.Sprintf("Not known of %d events in the last hour that have no key: their copies cannot be recognised. %d other copies were.", unkeyed, copies)
	}
	return Answer{false, text}
}

func deliveries(n int64) string {
	if n == 1 {
		return "1 delivery is"
	}
	return fmt.Sprintf("%d deliveries are", n)
}

func requests(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
