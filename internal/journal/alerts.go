package journal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Alerter is the side of a [Store] that remembers what is wrong, and what has to be told to whom. What an alert means, and when
// it moves, is not for stores to know.
type Alerter interface {
	// ChangeAlerts gives change what is remembered and writes what it returns, in one transaction
	// in which nobody else changes alerts. While another process does so it waits or, with try,
	// gives up: changed is false then, and change was not called. It may be called again if the
	// transaction has to begin anew, and must do nothing but decide. Its error is returned as it
	// is, and nothing is written. After another error nothing is known: all may be written, or
	// nothing.
	//
	// A notice for an address takes the place of those that still wait for it with an earlier
	// [Notice.Transition] of the same alert, unless somebody is sending them: who could not be told
	// for an hour is told how it stands, and not what happened meanwhile. One with the same number
	// takes its place in any case; what came of the other is recorded nowhere.
	ChangeAlerts(ctx context.Context, try bool, change func(*AlertBook) (*AlertChanges, error)) (changed bool, err error)

	// Alerts returns what is remembered.
	Alerts(ctx context.Context) (*AlertBook, error)

	// AlertHistory returns what happened to the alerts that match, newest first, from those below the number before (0: from the
	// newest on), at most limit of them.
	AlertHistory(ctx context.Context, f AlertFilter, before int64, limit int) ([]AlertRecord, error)

	// TakeNotices leases what one message tells: the notice to one of the addresses that is due for the longest time at now, and
	// all others of its rule and address, whether they are due or not, at most limit. Tries and tokens are raised by one. One
	// whose lease ran out is due. An alert of which a notice to the address is leased is left out, so that nobody hears of two in
	// the wrong order; of one that has several the latest is taken, and the others go.
	TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) ([]Notice, error)

	// FinishNotices records what came of notices, each only where its token is current, and returns for each whether it was
	// applied: told ones go, and leave a record; those that failed are due again at Due, or go if there is a later one of the
	// alert or they are given up. In the latter case a record says so, and of the others one of the first, second, fourth,
	// eighth try, and so on: a record of each would be hundreds.
	FinishNotices(ctx context.Context, outcomes []NoticeOutcome) ([]bool, error)
}

// AlertState is where an alert stands.
type AlertState string

// The states of an alert.
const (
	AlertPending  AlertState = "pending"  // it holds, for a shorter time than it has to
	AlertFiring   AlertState = "firing"   // it holds, or did a moment ago
	AlertResolved AlertState = "resolved" // it does not hold any more
)

// AlertID says which alert is meant.
type AlertID struct {
	Rule, Subject string
}

// Compare orders by rule, then subject.
func (id AlertID) Compare(other AlertID) int {
	return cmp.Or(strings.Compare(id.Rule, other.Rule), strings.Compare(id.Subject, other.Subject))
}

// Fingerprint is the identifier as one text: rule, slash, subject.
func (id AlertID) Fingerprint() string { return id.Rule + "/" + id.Subject }

// Alert is what is remembered of an alert.
type Alert struct {
	AlertID
	State    AlertState
	Severity string // page, ticket or info
	// Transition counts what happened that somebody may be told, and is never the same twice for one alert.
	Transition int64
	// Since is when State began, Fired when it last began to fire, and Seen when it last held. Zero: never.
	Since, Fired, Seen time.Time
	// Told is when somebody was last to be told of it since it fires, and ToldAs the severities that were named,
	// with commas, the highest first. Zero: nobody was.
	Told   time.Time
	ToldAs string
	// Cause is the fingerprint of the alert that this one follows from, and is hidden by. Empty: it is told.
	Cause string
	// Body is what the rule says, as JSON. Stores do not look into it.
	Body []byte
	// AckBy acknowledged it, at AckAt and for AckReason, until it is resolved or becomes more severe. Empty: nobody did.
	AckBy, AckReason string
	AckAt            time.Time
}

// Silence keeps alerts from being told for a while.
type Silence struct {
	// ID is the store's number of it.
	ID int64
	// Rule and Subject say which. Empty: any.
	Rule, Subject string
	At, Until     time.Time
	By, Reason    string
}

// Covers reports whether the silence is about an alert, and still lasts at a time.
func (s *Silence) Covers(id AlertID, now time.Time) bool {
	return now.Before(s.Until) && (s.Rule == "" || s.Rule == id.Rule) && (s.Subject == "" || s.Subject == id.Subject)
}

// AlertBook is all that is remembered of alerts.
type AlertBook struct {
	// Alerts are in the order of [AlertID.Compare], those that are resolved among them.
	Alerts []Alert
	// Silences are in the order of their numbers, those that ran out among them until they are forgotten.
	Silences []Silence
	// Waiting counts the notices that are not told yet, by address.
	Waiting map[string]int
}

// Find returns an alert, or nil.
func (b *AlertBook) Find(id AlertID) *Alert {
	if i, ok := slices.BinarySearchFunc(b.Alerts, id, func(a Alert, id AlertID) int { return a.Compare(id) }); ok {
		return &b.Alerts[i]
	}
	return nil
}

// Silenced returns a silence that covers an alert at a time, or nil.
func (b *AlertBook) Silenced(id AlertID, now time.Time) *Silence {
	if i := slices.IndexFunc(b.Silences, func(s Silence) bool { return s.Covers(id, now) }); i >= 0 {
		return &b.Silences[i]
	}
	return nil
}

// AlertChanges are what is to be written.
type AlertChanges struct {
	// Put are alerts as they stand now, in place of what was there.
	Put []Alert
	// Silence are new silences, whose numbers the store sets in place; Unsilence are the numbers of those that end.
	Silence   []Silence
	Unsilence []int64
	// Records are what happened. The store gives them numbers.
	Records []AlertRecord
	// Notices are what has to be told.
	Notices []Notice
	// Audits are what operators did.
	Audits []Audit
	// Forget, unless it is zero, deletes records that are older, alerts that are resolved since
	// before it, and silences that ran out before it. What waits to be told stays, and so does its
	// alert: numbers that began again would be taken for old.
	Forget time.Time
	// Abandon, unless it is zero, deletes notices that were decided before it. It is for those to addresses that are not
	// there any more: nobody takes them, and so nobody gives them up.
	Abandon time.Time
}

// Empty reports whether nothing is to be written.
func (c *AlertChanges) Empty() bool {
	return c == nil || len(c.Put)+len(c.Silence)+len(c.Unsilence)+len(c.Records)+len(c.Notices)+len(c.Audits) == 0 && c.Forget.IsZero() && c.Abandon.IsZero()
}

// AlertEvent is what happened to an alert.
type AlertEvent string

// What happens to alerts.
const (
	AlertFired        AlertEvent = "fired"
	AlertEscalated    AlertEvent = "escalated" // it became more severe
	AlertRepeated     AlertEvent = "repeated"  // it was to be told again
	AlertEnded        AlertEvent = "resolved"
	AlertAcknowledged AlertEvent = "acknowledged"
	AlertSilenced     AlertEvent = "silenced"
	AlertUnsilenced   AlertEvent = "unsilenced"
	AlertTold         AlertEvent = "told"     // an address has it
	AlertDelayed      AlertEvent = "delayed"  // an address could not be told, and is tried again
	AlertNotTold      AlertEvent = "not told" // an address was given up
)

// AlertRecord is one line of the history of alerts.
type AlertRecord struct {
	ID int64
	AlertID
	At         time.Time
	Event      AlertEvent
	Transition int64
	Severity   string
	// Text is the headline, the reason of a person, or the address that was told: see [AlertRecord.Address].
	Text string
	// By is a person. Empty: the gateway.
	By string
}

// Address returns who was told, or could not be told and why. It is empty unless the record is of that. Names of addresses have
// neither colons nor spaces.
func (r *AlertRecord) Address() (name, why string) {
	switch r.Event {
	case AlertTold, AlertDelayed, AlertNotTold:
		name, why, _ = strings.Cut(r.Text, ": ")
		name, _, _ = strings.Cut(name, " ") // what else is said of how it was recorded
	}
	return name, why
}

// AlertFilter says which alerts' history is meant, and what of it. Empty: any.
type AlertFilter struct {
	Rule, Subject string
	Events        []AlertEvent
}

// Matches reports whether a record is meant.
func (f *AlertFilter) Matches(r *AlertRecord) bool {
	return (f.Rule == "" || f.Rule == r.Rule) && (f.Subject == "" || f.Subject == r.Subject) &&
		(len(f.Events) == 0 || slices.Contains(f.Events, r.Event))
}

// Notice is something that an address has to be told.
type Notice struct {
	AlertID
	Transition int64
	Address    string
	// Due is when it is told at the earliest. While it is Leased it is the end of the lease.
	Due    time.Time
	Leased bool
	// Since is when it was decided.
	Since time.Time
	Tries int
	Token int64
	// Body is what is told, as JSON. Stores do not look into it.
	Body []byte
}

// NoticeOutcome is what came of a notice.
type NoticeOutcome struct {
	Notice
	At time.Time
	// Err is why the address could not be told; empty: it was.
	Err string
	// Due is when it is tried again. Zero: never. At: at once, because whoever told was cut off, and not the address at fault.
	Due time.Time
}

// ErrNoAlert says that there is no such alert, or none that could be acknowledged, or no such silence.
var ErrNoAlert = errors.New("journal: there is no such alert")
