package journal

import (
	"context"
	"time"
)

// Store is where the journal is durable: the parts of its contract, each of which is named for those who
// call it. Implementations: journal/pg and journal/sqlite; journaltest has the conformance suite and the
// reference.
//
// Every method that writes is one transaction: it happens wholly or not at all, and when it returns without
// an error it is durable (fsynced, or committed with synchronous_commit on). Methods are safe for
// concurrent use. An error means that nothing is known about the outcome: it may have been
// persisted. Times come from the caller.
type Store interface {
	Accepter
	Worker
	Keeper
	Reader
	Operator
	Registry
	Tallier
	Alerter
	Reconciler
	MissingKeeper
}

// MaxBatchBytes is how much the headers and bodies of one [Accepter.Accept] weigh when no more records are added to them. What a
// batch is sent in has a limit of its own, 1 GiB on Postgres, and one beyond that would fail for as long as it was tried.
const MaxBatchBytes = 64 << 20

// Accepter is the side of a [Store] for those who bring events, and wait for what becomes of them.
type Accepter interface {
	// Accept stores a batch and returns one result per record, in order. For each record: a key that
	// is new in its source is stored with its body and one delivery per destination; a key that
	// exists changes nothing, except that its failed or dead deliveries become pending and due at
	// once (a redelivery re-drives failed work); an empty key is always new. The same key twice in
	// one batch is new once. Records with Hold are stored as processing under token 1 with a lease
	// until lease; others as pending, due now.
	//
	// A record under a [CoalesceKey] is a duplicate, whatever its digest, while every one of its
	// destinations has a delivery of the stored event to come: one that waits and was never taken. Otherwise the
	// stored event loses the key, which may be durable even if the call then fails, and the record is new.
	//
	// A record that is [Record.Bypassed] makes nothing due that failed or is dead: what of it the destinations have taken would be delivered
	// again before [Accepter.RecordBypassed] ends it.
	//
	// A record that is [Event.Listed] is stored if its key is new, like any other. If it is not, the record is a
	// duplicate and changes nothing, not even failed or dead deliveries: it is no copy from the sender. Nor does it when
	// it is stored without deliveries because of an earlier logical duplicate. A stored event that is Listed has no
	// digest: the first record under its key that is not Listed is a duplicate, whatever its digest, and supplies that,
	// with which all later ones are compared. Of several that differ and come at once, one supplies it and the others
	// are conflicts.
	//
	// A record with a [Event.CellMap] that is not the number of the store's newest map is refused with [ErrCellMap] in its
	// result, a copy too, and leaves its neighbours stored. Only a [CellKeeper] takes such records, and those of several maps
	// may be several transactions.
	//
	// A row that the database refuses for its content gets an error in its Result.Err and leaves its
	// neighbours stored. Concurrent batches that share keys must not deadlock.
	Accept(ctx context.Context, batch []*Record, now, lease time.Time) ([]Result, error)

	// RecordBypassed records deliveries that were made past the store, as [Outcome]s that are done and whose
	// tokens mean nothing. An open delivery ends, whatever its state, so that whoever holds it can record
	// nothing any more, and its attempt comes under the next token. Where none is open the attempt comes under the one
	// after that of the last attempt, unless it is on record: one that began at the same time and is done.
	RecordBypassed(ctx context.Context, outcomes []Outcome) error

	// RecordDuplicates records when copies of events came. Of each event and kind the store keeps [MaxReceipts]
	// rows, the last of which sums up what came later. What has no event any more is left out.
	RecordDuplicates(ctx context.Context, seen []DuplicateReceipt) error

	// Statuses says how deliveries stand, in order, each as one moment has it: the state of the delivery, and
	// the response that is kept with it. One that is not open is done if its event is on record, and [Absent] if
	// that is not.
	Statuses(ctx context.Context, deliveries []DeliveryID) ([]DeliveryStatus, error)
}

// Worker is the side of a [Store] for those who deliver.
type Worker interface {
	// Take leases deliveries that are wanted and due at now (pending or failed whose time has come,
	// processing whose lease ran out), oldest due first, skipping what other processes are taking at
	// the same moment: state processing, token raised by one, lease as given, tries raised by one but where
	// a lease ran out: whether an attempt was made under it nobody knows, since the answer of a Take may be lost.
	// The returned work carries header and body. A delivery whose body is gone becomes dead with an
	// error that says so, and is not returned.
	Take(ctx context.Context, now, lease time.Time, want Wanted) ([]*Work, error)

	// Extend moves the leases of held work to lease, where the token is current and the delivery is
	// processing, and returns for each whether it still is held.
	Extend(ctx context.Context, held []Held, lease time.Time) ([]bool, error)

	// Finish records outcomes, each only where its token is current and the delivery is processing,
	// and returns for each whether it was applied. Done deletes the delivery; Failed makes it due at
	// Due, with tries lowered by one if it is Spared; Dead parks it; Pending hands it back unattempted (tries
	// lowered by one, due at Due, no attempt recorded). Every other outcome leaves a row in attempts. The
	// Response of one that is done is kept, in place of an earlier one.
	Finish(ctx context.Context, outcomes []Outcome) ([]bool, error)

	// Orphans makes due at once all work that is processing, when the store can know that no other
	// process is alive to hold it (an embedded database that is locked to one process). Others
	// return 0. It is called once, before anything else.
	Orphans(ctx context.Context, now time.Time) (int, error)
}

// Keeper is the side of a [Store] for its upkeep. See also [Partitioned].
type Keeper interface {
	// Purge does one step of a sweep, see [Purge]. While another process does one nothing is deleted, see [Purged.Busy].
	Purge(ctx context.Context, p Purge) (Purged, error)

	// Stats counts rows. It is for gauges: exact for open work, an estimate where counting would read
	// a whole table.
	Stats(ctx context.Context) (Stats, error)

	// Ping reports whether the store can be written to.
	Ping(ctx context.Context) error

	// Close releases connections and locks. The store must not be used afterwards.
	Close() error
}

// Reader is the side of a [Store] that answers people who ask what happened to events.
type Reader interface {
	// List returns the events that match, newest first, from those below the identifier before (0:
	// from the newest on), at most limit of them. It looks at no more than [MaxScan] events, so a page
	// may be short, or empty, although others follow: Page.Next says so. Whatever is accepted meanwhile
	// neither repeats nor hides an event of a later page.
	List(ctx context.Context, f Filter, before int64, limit int) (Page, error)

	// Arrivals returns what there is from the identifier first on, oldest first, at most limit of them. It is asked often, and
	// reads no more than these rows.
	Arrivals(ctx context.Context, first int64, limit int) ([]Arrival, error)

	// Summaries returns what [Reader.List] would say about the events, oldest first, as far as they are there.
	Summaries(ctx context.Context, ids []int64) ([]Summary, error)

	// Contents calls see with the header and the body of each of the events, in any order, as far as they are
	// kept, and stops at its first error. What see gets is its own until it returns.
	Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error

	// Find returns the identifier of the event that has a key in a source, or [ErrNoEvent].
	Find(ctx context.Context, source, key string) (int64, error)

	// FindAnywhere returns what [Reader.List] would say about the events that have a key, one of
	// each source that has it on record, newest first, or [ErrNoEvent]. The work grows with the
	// number of sources on record.
	FindAnywhere(ctx context.Context, key string) ([]Summary, error)

	// History returns all that is known about one event, or [ErrNoEvent].
	History(ctx context.Context, id int64) (*History, error)

	// FailureGroups groups the deliveries that are failed or dead, and the attempts that failed since then. The work
	// grows with the number of groups, and with that of deliveries up to [MaxFailureCount] for each.
	FailureGroups(ctx context.Context, since time.Time) (Failures, error)

	// Open counts the deliveries that are not done, by destination and state, in this order.
	Open(ctx context.Context) ([]OpenCount, error)
}

// Operator is the side of a [Store] that does what people decide, and keeps a record of it.
type Operator interface {
	// Replay makes deliveries begin again, those of at most limit events after the identifier r.After,
	// oldest first. See [Replay] for which. In the same transaction the audit log r.Audit is written,
	// or continued, unless nothing begins again. With DryRun it only counts.
	//
	// Only what is failed or dead at this moment is made due, and only what has no row is made anew, under
	// a token above all earlier ones: of a delivery that is pending or processing nothing changes, and no
	// two replays make the same delivery.
	Replay(ctx context.Context, r Replay, limit int) (Replayed, error)

	// SetPaused pauses a destination or resumes it, and leaves an entry of the audit log if that changed anything.
	SetPaused(ctx context.Context, p Pause, paused bool) (changed bool, err error)

	// Pauses returns the destinations that are paused, by name.
	Pauses(ctx context.Context) ([]Pause, error)

	// RecordAudit leaves an entry of the audit log about what changes nothing, under a number of the store's.
	RecordAudit(ctx context.Context, a Audit) error

	// Audits returns what operators did, newest first, from those below the number before (0: from the
	// newest on), at most limit of them.
	Audits(ctx context.Context, before int64, limit int) ([]Audit, error)
}

// Registry is the side of a [Store] in which the processes that share it say of themselves what others may
// want to know.
type Registry interface {
	// Announce records what a gateway says of itself in place of what it said before, and forgets those that
	// were last seen before forget. It need not be durable: gateways say it again.
	Announce(ctx context.Context, g Gateway, forget time.Time) error

	// Withdraw forgets a gateway.
	Withdraw(ctx context.Context, id string) error

	// Gateways returns those that are not forgotten, the longest running first.
	Gateways(ctx context.Context) ([]Gateway, error)
}
