package hookonce

import (
	"context"
	"time"
)

// Inspector lists what a store holds, for people who look after it: package dashboard shows it. The stores in SQL
// databases are Inspectors. Every list is bounded and goes along an index; nothing counts the rows of a large table.
// Methods only read, and their times are those of the store's clock.
type Inspector interface {
	Store

	// Sources returns the sources of which there are claims, those of [Once] among them, in order: the first
	// [MaxSources].
	Sources(ctx context.Context) ([]string, error)

	// ListClaims lists claims, those that were changed last first.
	ListClaims(ctx context.Context, q ClaimQuery) ([]Claim, error)

	// FindClaims returns the claims that a source has under the keys, in any order, in one question. Keys are in the form of
	// [NormalKey]; those that no claim can have are left out. With more than [MaxFind] it fails. What is not among the claims
	// was never claimed, or is purged.
	FindClaims(ctx context.Context, source string, keys []string) ([]Claim, error)

	// CountClaims counts the claims that are not done, by source and state. It looks at no more than limit of them, those
	// that were changed longest ago first where the database has them in this order, and besides at no more than limit of
	// those that were changed last, among which are leases that ran out lately: if so many were counted in all, there may be more.
	CountClaims(ctx context.Context, limit int) ([]ClaimCount, error)

	// ListEffects lists effects of the outbox, without their payloads.
	ListEffects(ctx context.Context, q EffectQuery) ([]QueuedEffect, error)

	// CountEffects counts the effects that are not done, by name. Of each name it looks at no more than limit that are
	// open, and of all names at no more than limit that are dead.
	CountEffects(ctx context.Context, limit int) ([]EffectCount, error)

	// ListGuards lists what guards of a kind recorded, by ascending name, above after, at most limit.
	ListGuards(ctx context.Context, kind GuardKind, after string, limit int) ([]Guard, error)

	// Reconciliations lists what `hookonce reconcile effects` found, the latest first, at most limit.
	Reconciliations(ctx context.Context, limit int) ([]Reconciliation, error)
}

// MaxSources is how many sources an [Inspector] tells of.
const MaxSources = 1000

// MaxFind is how many keys [Inspector.FindClaims] takes at once.
const MaxFind = 1000

// ClaimQuery says which claims [Inspector.ListClaims] lists. Every field narrows it.
type ClaimQuery struct {
	// States are those of the claims. Empty: all but [StateDone]. Done claims are many, and are listed of one source only:
	// without Source there are none.
	States []State
	Source string
	// Key is that of the claims. With it States may be anything, and claims of all sources are found.
	Key string
	// Lapsed keeps those only that are processing and whose lease has run out.
	Lapsed bool
	// From and Until bound the time of the last change: from From on, and before Until. Zero: no bound.
	From, Until time.Time
	// After is the last claim of the page before. Nil: from the latest on.
	After *Claim
	// Limit is how many are listed at most; none if it is not positive.
	Limit int
}

// ClaimCount says how many claims of a source there are in a state, as far as they were counted.
type ClaimCount struct {
	Source string
	State  State
	N      int
	// Lapsed is how many of them, at least, are processing and have a lease that ran out.
	Lapsed int
	// Oldest is when the one was changed that was changed longest ago.
	Oldest time.Time
}

// EffectQuery says which effects [Inspector.ListEffects] lists: one by its number, or those of a claim by their numbers, or
// those that are dead by their numbers, or else those that are open, by name and then by when they are due.
type EffectQuery struct {
	ID int64
	// Ref is the claim that asked for them. It must have a key.
	Ref Ref
	// Dead chooses those that were given up.
	Dead bool
	// Name keeps those of one name.
	Name string
	// After is the last effect of the page before. Nil: from the first on.
	After *QueuedEffect
	// Limit is how many are listed at most; none if it is not positive.
	Limit int
}

// EffectCount says how many effects of a name there are, as far as they were counted.
type EffectCount struct {
	Name string
	// Open are those to be carried out or under way, and Late those of them that are due and not under way: their time has come,
	// or the lease of the relay that had them is over.
	Open, Late int
	// Due is when the first of those that are open is due, or its lease ends. Zero: none is open.
	Due  time.Time
	Dead int
}

// GuardKind is what a guard records.
type GuardKind string

// The kinds of guards. What [Once] took are claims, under sources of their own.
const (
	// GuardVersions are the newest ranks that [Newer] applied.
	GuardVersions GuardKind = "versions"
	// GuardStates are where [Transition] left its state machines.
	GuardStates GuardKind = "states"
)

// Guard is what a guard recorded of one resource or entity.
type Guard struct {
	Name string
	// Rank is set of [GuardVersions], and State of [GuardStates].
	Rank      Rank
	State     string
	UpdatedAt time.Time
}

// Reconciliation is what one run of `hookonce reconcile effects` found: whether effects in a table of the program's own are there
// once.
type Reconciliation struct {
	At time.Time `json:"at"`
	// Question is what was compared.
	Question ReconcileQuestion `json:"question"`
	// Rows are those with an event's identifier, and Unidentified those without. Doubled are events with more than one row,
	// and Surplus the rows beyond the first of each.
	Rows         int64 `json:"rows"`
	Unidentified int64 `json:"unidentified"`
	Events       int64 `json:"events"`
	Doubled      int64 `json:"doubled"`
	Surplus      int64 `json:"surplus"`
	// Lost is how many events are done and have no row, nil if that was not asked, or has no answer: then Fault says why.
	Lost  *int64 `json:"lost,omitempty"`
	Fault string `json:"fault,omitempty"`
	// Found are some of the events with more than one row, and then some of those with none, at most [MaxReconciled] each.
	Found []Reconciled `json:"found"`
}

// MaxReconciled is how many events of a kind a [Reconciliation] names.
const MaxReconciled = 100

// ReconcileQuestion is what `hookonce reconcile effects` was asked, in the words of its flags.
type ReconcileQuestion struct {
	Table        string `json:"table"`
	EventColumn  string `json:"event_column"`
	SourceColumn string `json:"source_column,omitempty"`
	TimeColumn   string `json:"time_column,omitempty"`
	Where        string `json:"where,omitempty"`
	Source       string `json:"source,omitempty"`
	Lost         string `json:"lost,omitempty"`
}

// Flags are what `hookonce reconcile effects` is asked with to look again, each flag followed by its value.
func (q ReconcileQuestion) Flags() (flags []string) {
	for _, f := range [][2]string{
		{"--table", q.Table}, {"--event-column", q.EventColumn}, {"--source-column", q.SourceColumn}, {"--time-column", q.TimeColumn},
		{"--where", q.Where}, {"--source", q.Source},
	} {
		if f[1] != "" {
			flags = append(flags, f[0], f[1])
		}
	}
	if q.Lost != "" {
		flags = append(flags, "--lost="+q.Lost)
	}
	return flags
}

// Reconciled is an event that has not one row.
type Reconciled struct {
	Source string `json:"source,omitempty"`
	Event  string `json:"event"`
	// Rows is how many it has: two or more, or none.
	Rows int64 `json:"rows"`
	// At is the time of the last of them, or of the event, as the database writes it. Empty: it is not known.
	At string `json:"at,omitempty"`
}
