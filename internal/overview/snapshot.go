// Package overview knows how a gateway stands: what comes in, what goes out, what failed and what the store does, as one
// [Snapshot] that is cheap to look at. It asks at most once a second, however many look, and shows what it knew last
// when the store is away.
package overview

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
)

// Snapshot is how all that a gateway knows of stands at a moment. It is not changed once it was made.
type Snapshot struct {
	At           time.Time          `json:"at"`
	Since        time.Time          `json:"since" doc:"When the process started that answers."`
	Store        StoreState         `json:"store"`
	Sources      []SourceState      `json:"sources" nullable:"false"`
	Destinations []DestinationState `json:"destinations" nullable:"false"`
	Gateways     []fleet.Gateway    `json:"gateways" nullable:"false"`
	Numbers      Numbers            `json:"numbers"`
	Reconciled   []Reconciled       `json:"reconciled" nullable:"false" doc:"What hookonce reconcile effects found, the latest result of each question."`
	Cells        []CellState        `json:"cells" nullable:"false" doc:"The other cells, as this gateway sees them."`
	Parts        []Part             `json:"parts" nullable:"false" doc:"How old what is shown is."`
	// Config is the configuration file of the gateway, as a word of a shell, where commands do not find it by themselves.
	Config string `json:"-"`
}

// Part says how old a part of a snapshot is.
type Part struct {
	Name  string    `json:"name" doc:"What was asked for."`
	Read  time.Time `json:"read,omitzero" doc:"When it was read; missing if it never was."`
	Error string    `json:"error,omitempty" doc:"Why it could not be read since."`
	// Failing is when it could not be read for the first time since.
	Failing time.Time `json:"failing,omitzero"`
}

// The names of parts.
const (
	PartDestinations    = "destinations"    // who is delivered to, and how that goes
	PartOpen            = "open"            // what is open
	PartRows            = "rows"            // how large the store is
	PartFailures        = "failures"        // what failed
	PartMinutes         = "minutes"         // what was counted in the last ones
	PartHours           = "hours"           // in those of four weeks
	PartLast            = "last events"     // before them, of sources of which something is expected
	PartReconciliations = "reconciliations" // what hookonce reconcile effects found
	PartMarks           = "marks"           // how far sources were compared with their senders' lists
	PartMissing         = "never arrived"   // what senders list and nobody has
)

// Unanswered reports whether what the part says cannot be gone by at a time: the store never answered
// when it was asked for it, or has not for a minute. One question that failed makes nobody blind.
func (p *Part) Unanswered(at time.Time) bool {
	return p.Read.IsZero() || p.Error != "" && at.Sub(p.Failing) >= time.Minute
}

// Old returns the parts that are older than people would think: what the store did not answer, and all
// that was read more than a minute ago, if it is to be read more often or is not read while the store
// is away.
func (s Snapshot) Old() (old []Part) {
	often := []string{PartDestinations, PartOpen, PartFailures}
	for _, p := range s.Parts {
		if p.Error != "" || s.At.Sub(p.Read) > time.Minute && (s.Store.Away != nil || p.Read.IsZero() || slices.Contains(often, p.Name)) {
			old = append(old, p)
		}
	}
	return old
}

// CellState is how another cell stands.
type CellState struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty" doc:"Why nothing can be handed to it; missing if it answers and has the same map."`
	Idle  bool   `json:"idle,omitempty" doc:"It owns no keys, and nobody asks it for any: nothing is refused while it is away."`
}

// Reconciled is what was found when a table of an application was compared with what was delivered.
type Reconciled struct {
	At      time.Time `json:"at"`
	Until   time.Time `json:"until" doc:"When it does not say any more how things are."`
	Table   string    `json:"table"`
	Doubled int64     `json:"doubled" doc:"Events with more than one effect."`
	Surplus int64     `json:"surplus" doc:"Effects beyond the first of each of them."`
	Lost    *int64    `json:"lost,omitempty" doc:"Events that are done and have no effect; missing if that was not asked."`
	Sample  string    `json:"sample,omitempty" doc:"One of the events with more than one effect."`
	Command string    `json:"command" doc:"What asks again."`
}

// StoreState is how the store of the journal stands.
type StoreState struct {
	Away        *Trouble  `json:"away,omitempty" doc:"It does not answer: what is shown of it is what was known last."`
	Unwritable  *Trouble  `json:"unwritable,omitempty" doc:"It answers, and takes nothing."`
	Gone        bool      `json:"gone,omitempty" doc:"The file was taken away while it was open: a restart may lose what it acknowledged."`
	Full        *Trouble  `json:"full,omitempty" doc:"The queue of events that wait for their commit is full."`
	CommitMS    float64   `json:"commit_ms" doc:"What one transaction took on average in the last seconds."`
	Commits     int64     `json:"commits" doc:"So many transactions were that."`
	Events      int64     `json:"events" doc:"Rows; an estimate on Postgres."`
	Bytes       int64     `json:"bytes"`
	FreeBytes   int64     `json:"free_bytes,omitempty" doc:"Left on the disk; missing where that is not known."`
	DailyBytes  int64     `json:"daily_bytes" doc:"By which it grew on an average day, of the last seven."`
	Unrecorded  int64     `json:"unrecorded" doc:"Events that were delivered past the store and are on no record yet."`
	Cleaned     time.Time `json:"cleaned,omitzero" doc:"When this process last found nothing more to delete; missing if it has not yet."`
	Partitioned time.Time `json:"partitioned,omitzero" doc:"The end of the last partition; missing if the gateway makes none."`
}

// Trouble says since when something is wrong, and what.
type Trouble struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
}

// Intake counts what came from a source in some time.
type Intake struct {
	Received   int64            `json:"received"`
	Verified   int64            `json:"verified"`
	Active     int64            `json:"active_minutes" doc:"Minutes in which something authentic came."`
	Accepted   int64            `json:"accepted"`
	Copies     int64            `json:"copies"`
	Reseen     int64            `json:"reseen" doc:"Events that came again."`
	Conflicts  int64            `json:"conflicts"`
	Unkeyed    int64            `json:"unkeyed"`
	Missing    int64            `json:"missing" doc:"Events of the sender's list that never arrived."`
	Recovered  int64            `json:"recovered" doc:"Those that were stored from the list, or asked for again."`
	Ours       int64            `json:"refused_by_us" doc:"Requests that were answered 503 for a fault of ours. In five_minutes those for cell_map count if there were some in the five minutes before as well."`
	OursBy     map[string]int64 `json:"refused_by_us_reasons,omitempty" doc:"Those, by reason."`
	Unverified map[string]int64 `json:"unverified,omitempty" doc:"Requests that are not authentic, or of which that cannot be told (undecided), by reason."`
	NotTaken   map[string]int64 `json:"not_taken,omitempty" doc:"Other requests that were not acknowledged, by reason: what is beyond the limits of the source (address, rate, too_large, headers_too_large), did not come whole (slow, truncated), found no memory beside what others were sending (crowded), came to a gateway that was stopping (closing), comes from a destination that leads back here (loop), or is stored and was not handled by the application of mode: sync in time (unanswered)."`
}

// Unanswered is why a request of mode: sync is refused that is stored: the application has not answered it in time, or could not handle it.
const Unanswered = "unanswered"

// Failed counts the requests that are not authentic.
func (i *Intake) Failed() (n int64) {
	for _, count := range i.Unverified {
		n += count
	}
	return n
}

// Events counts what copies are a share of: new events and those that came again.
func (i *Intake) Events() int64 { return i.Accepted + i.Unkeyed + i.Reseen }

// Routed says how much of what came led anywhere.
type Routed struct {
	New      int64 `json:"new" doc:"Events stored as new."`
	Unrouted int64 `json:"unrouted" doc:"Those of them that no route wanted."`
}

// SourceState is how a source stands.
type SourceState struct {
	Name         string    `json:"name"`
	Provider     string    `json:"provider"`
	Path         string    `json:"path"`
	Destinations []string  `json:"destinations" nullable:"false"`
	Five         Intake    `json:"last_5m"`
	Hour         Intake    `json:"last_1h"`
	Day          Routed    `json:"last_24h"`
	Latest       Intake    `json:"latest" doc:"The last minutes that have 20 requests, at most an hour."`
	LastVerified time.Time `json:"last_verified,omitzero" doc:"To the minute; missing if there was nothing for 28 days or, where expect_every says within what time something is expected, for 100."`
	LastFailed   time.Time `json:"last_failed,omitzero" doc:"When a request was not authentic, to the minute; missing if none was."`
	FailedSince  time.Time `json:"failed_since,omitzero" doc:"The first of those in a later minute than the last authentic request; missing if there is none."`
	ReseenFor    int       `json:"reseen_for" doc:"For so many minutes more events came again than is usual."`
	Usual        Baseline  `json:"usual"`
	Silence      Silence   `json:"silence"`
	Compared     *Compared `json:"compared,omitempty" doc:"With the list that its sender has of what it made; missing if the gateways do not compare it."`
	NeverArrived *Lost     `json:"never_arrived,omitempty" doc:"What its sender made and gateways could not recover; missing if that is nothing."`
	Open         bool      `json:"open,omitempty" doc:"Its events, or some types of them, are delivered past the store while that is away (on_store_down: open)."`
	ExpectEvery  int64     `json:"expect_every,omitempty" doc:"Seconds within which something is expected, as it is configured."`
	Secrets      []Secret  `json:"secrets,omitempty" doc:"In the order of the configuration."`
	SecretsSince time.Time `json:"secrets_since,omitzero" doc:"The first hour, of 28 days, in which it was counted what its secrets verified; missing if there is none."`
}

// Compared says how far a source was compared with its sender's list, by whichever gateway.
type Compared struct {
	Every     int64     `json:"every" doc:"Seconds between two comparisons, as it is configured."`
	Through   time.Time `json:"through,omitzero" doc:"All that the sender made until then was looked for, except what the audit log names as not compared; missing if nothing was."`
	Ended     time.Time `json:"ended,omitzero" doc:"When the last comparison ended; missing if none has."`
	Listed    int64     `json:"listed" doc:"Events that the sender listed then."`
	Missing   int64     `json:"missing" doc:"Those that never arrived, and were not told before."`
	Recovered int64     `json:"recovered" doc:"Those that were stored, or asked for again."`
	Error     string    `json:"error,omitempty" doc:"Why it did not come to its end."`
	Running   bool      `json:"running,omitempty" doc:"It is being compared at this moment."`
}

// Lost counts what never arrived, until it is on record, dismissed, or gone from the sender's list.
type Lost struct {
	Count  int64     `json:"count" doc:"Those that GET /sources/{name}/missing lists."`
	Beyond int64     `json:"beyond,omitempty" doc:"At least so many more."`
	First  time.Time `json:"first" doc:"When the first of them was found."`
}

// Secret is what is known of a secret, which is no secret itself.
type Secret struct {
	From   *time.Time `json:"from,omitempty" doc:"When it begins to be valid, as it is configured."`
	Until  *time.Time `json:"until,omitempty" doc:"When it ends."`
	Hour   int64      `json:"last_1h" doc:"Authentic requests that it was the first to verify."`
	Day    int64      `json:"last_24h"`
	Week   int64      `json:"last_7d"`
	Shared bool       `json:"shared,omitempty" doc:"What it counts is of all from here on: only so many secrets are told apart."`
}

// DestinationState is how a destination stands.
type DestinationState struct {
	fleet.Destination
	Five     Outcomes      `json:"last_5m"`
	Half     Outcomes      `json:"last_30m"`
	Hour     Outcomes      `json:"last_1h"`
	Six      FirstAttempts `json:"last_6h"`
	Backlog  int64         `json:"backlog" doc:"Deliveries that are open and not dead."`
	Dead     int64         `json:"dead"`
	Oldest   *time.Time    `json:"oldest,omitempty" doc:"When the oldest of the backlog was accepted."`
	Since    *time.Time    `json:"since,omitempty" doc:"Since when the one of the backlog waits that waits longest, by which backlog_old goes. What was dead or done and is replayed waits since it was due."`
	DrainsIn *float64      `json:"drains_in_seconds,omitempty" doc:"When the backlog is gone, if it goes on getting shorter as it did in the last five minutes. 0: it does not get shorter; missing: there is none, or nobody has looked at it for half a minute yet."`
	Failures []Failure     `json:"failures" nullable:"false" doc:"What failed, the most frequent first."`
	Blocked  *Blocked      `json:"blocked,omitempty"`
}

// Outcomes count attempts in some time.
type Outcomes struct {
	First       int64 `json:"first"`
	FirstFailed int64 `json:"first_failed"`
	Attempts    int64 `json:"attempts"`
	Done        int64 `json:"done"`
	Failed      int64 `json:"failed"`
	Dead        int64 `json:"dead"`
}

// FirstAttempts returns those of the attempts that were first ones.
func (o Outcomes) FirstAttempts() FirstAttempts { return FirstAttempts{o.First, o.FirstFailed} }

// FirstAttempts count first attempts in some time: all that is read of more than the last hour.
type FirstAttempts struct {
	First       int64 `json:"first"`
	FirstFailed int64 `json:"first_failed"`
}

// Failure is a group of deliveries that failed for one reason.
type Failure struct {
	Kind   string    `json:"kind"`
	Status int       `json:"status,omitempty"`
	Error  string    `json:"error"`
	Count  int64     `json:"count"`
	Dead   int64     `json:"dead"`
	Since  time.Time `json:"since"`
	Latest time.Time `json:"latest"`
	Source string    `json:"source" doc:"Of the latest sample."`
	Event  int64     `json:"event,string" doc:"The latest sample."`
	Type   string    `json:"type,omitempty" doc:"The type of the latest events, at most three; missing if they differ, or if there is only one."`
}

// Blocked says what holds up an ordering group.
type Blocked struct {
	Resource string `json:"resource"`
	Event    int64  `json:"event,string" doc:"The one that fails."`
	Waiting  int64  `json:"waiting" doc:"Events of the resource that wait for it."`
}

// Numbers are the three that say whether all is well, with the hours of seven days, the latest last.
type Numbers struct {
	First           FirstAttempts `json:"first_attempts" doc:"Of the last 24 hours."`
	FirstShares     []float64     `json:"first_failed_shares" nullable:"false"`
	Reseen          int64         `json:"reseen" doc:"Events that came again in the last 24 hours."`
	Events          int64         `json:"events" doc:"New events in the same time, and those that came again."`
	ReseenCounts    []float64     `json:"reseen_counts" nullable:"false"`
	Rows            int64         `json:"rows"`
	StoredYesterday int64         `json:"stored_yesterday" doc:"Events, in the last whole day in UTC."`
	PurgedYesterday int64         `json:"purged_yesterday"`
	StoredCounts    []float64     `json:"stored_counts" nullable:"false"`
}
