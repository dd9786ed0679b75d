package hookonce

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Store holds claims in lease mode: for effects that cannot share a transaction with the claim
// (calls to other systems, Redis, long jobs). Guarantee: at least once with a stable key; the token
// fences off a worker that lost its lease.
//
// Every method is safe for concurrent use by many processes. Every method is atomic: it happens
// wholly or not at all. An error that wraps none of this package's errors means that the store could
// not be reached or failed; the caller then knows nothing about the state and must not acknowledge
// anything. One that wraps [ErrSchemaMissing], which every method may return, means that the
// migrations were not run. All methods take their time from the store's clock, never from the
// database, and honour ctx; a caller that records an outcome should pass a context that outlives the
// request (see [context.WithoutCancel]).
type Store interface {
	// Claim decides in one atomic statement who owns the work under req.Ref: it creates the claim,
	// takes over the one that is there with the token raised by one, or reports Duplicate, Busy or Pinned
	// without changing anything, as [Claim.VerdictFor] says. Concurrent calls with the same reference produce exactly one Acquired.
	// A request without a key answers Unkeyed and writes nothing. Errors: [ErrInvalidRef].
	Claim(ctx context.Context, req ClaimRequest) (Claim, error)

	// Complete records that the work under c is done. It applies only while c.Token is current and
	// the claim is processing, even when the lease has run out but nobody took over. It is
	// idempotent for the same token: completing a claim that this token already completed succeeds.
	// Errors: [ErrStale], [ErrNotFound].
	Complete(ctx context.Context, c Claim) error

	// Fail records that the attempt under c failed, and frees the claim for the next copy of the
	// event: as [Failure] says for every request, for a request with the same digest only, or as if it had never
	// been seen. It applies only while c.Token is current; idempotent for the same token. A claim that is to
	// be forgotten must have the FirstSeen that the store answered, and is not the caller's any more in any
	// way, because tokens begin anew after that.
	// Errors: [ErrStale], [ErrNotFound] (not if the claim was to be forgotten).
	Fail(ctx context.Context, c Claim, f Failure) error

	// Extend moves the lease to now + d and returns the claim with its new lease. It applies only
	// while c.Token is current and the claim is processing; a claim whose lease ran out can still be
	// extended if nobody took it over. d must be positive. Errors: [ErrStale], [ErrNotFound].
	Extend(ctx context.Context, c Claim, d time.Duration) (Claim, error)

	// Lookup returns the claim as it stands. Errors: [ErrNotFound].
	Lookup(ctx context.Context, ref Ref) (Claim, error)

	Purger
}

// TxStore is a Store whose database also holds the effect, so that claim and effect commit together.
// Guarantee: atomic. Tx is the transaction type of the driver (pgx.Tx, *sql.Tx).
type TxStore[Tx any] interface {
	Store

	// Within claims req.Ref and runs fn in the same transaction.
	//
	// Acquired and Unkeyed run fn once; when fn returns nil the transaction commits. Duplicate returns
	// without running fn and without an error: the work is done. Busy returns without running fn, and
	// with an error that wraps [ErrBusy]: the owner may still fail, so nothing may be acknowledged. So does
	// Pinned, with [ErrPinned]: the request is another one than the first, whose effects may be there. While
	// another transaction holds the same key, Within waits for it, at most the store's bounded wait,
	// and then answers Busy. So an error of nil always means that the work is done and durable.
	//
	// A store whose database has no transaction that stays open may decide at the commit instead: then nobody waits, of
	// copies that overlap several may run fn, one of them commits, nothing remains of the others, and these are answered by what
	// holds by then, as if they had not run. ClaimTx does not wait there either, and the commit of whoever lost fails with an
	// error that wraps [ErrBusy]. One that sends claim and effect in a single message may even run fn before it knows anything of
	// the claim: for copies of finished work as well, of which nothing remains, and again where the claim is another one.
	//
	// The claim that Within returns has the verdict, also beside an error, and is zero only if there is
	// none because the store failed before. It tells a key that is held elsewhere (verdict Busy) from an
	// ErrBusy that fn returned (verdict Acquired, with the claim that fn was given).
	//
	// When fn returns an error, or panics, the transaction is rolled back, and then a durable trace
	// of the failure is left in a transaction of its own: state failed (dead for [Permanent]
	// errors), the attempt number, the error's text, and whether the attempt may have had effects outside
	// (see [FailureOf]). A first attempt that is to be forgotten leaves none. fn's error is returned
	// wrapped, a panic is re-raised. Nothing is known of what a process did outside that died before its
	// trace was written.
	//
	// The trace never overwrites done work, a lease that is held, a newer attempt or other content
	// that the claim is pinned to, and never makes dead work of the same attempt number failed: another copy
	// may have got to the key between the rollback and the trace. When the trace cannot be written, the
	// returned error wraps [ErrTraceLost] besides fn's error. So it does when the trace of a [Permanent]
	// error, or of an attempt that reached the outside, gives way, whatever it gave way to: nothing says that
	// the work was given up, and nobody may be told so. The next copy of the event reads what holds instead;
	// it is a duplicate if the work is done.
	//
	// An error that wraps [ErrUnknownOutcome] means that the connection was lost during the commit.
	// fn must not commit or roll back tx, and must not use it after returning. If it commits and then fails, a store that
	// can tell opens the claim again with the trace, and the next copy repeats the work. ctx bounds the whole
	// call; when it ends the transaction is rolled back (the trace is still written, under a short
	// deadline of the store's own).
	Within(ctx context.Context, req ClaimRequest, fn func(tx Tx, c Claim) error) (Claim, error)

	// ClaimTx claims req.Ref inside a transaction that the caller began and will end. Acquired means
	// that the claim becomes visible as done when the caller commits; a rollback undoes it. Busy
	// means that the claim is processing under a lease elsewhere; the claim is returned with an error
	// that wraps [ErrBusy], and the transaction can go on. So it is for Pinned, with [ErrPinned]. It may wait for another transaction that
	// holds the same key as long as the database lets it; after any other error the transaction must
	// be rolled back.
	ClaimTx(ctx context.Context, tx Tx, req ClaimRequest) (Claim, error)
}

// Response is an HTTP response in full, as it was given to the first of several equal requests.
type Response struct {
	Status int
	// Header holds the header fields that are given again, under canonical names.
	Header http.Header
	Body   []byte
}

// ResponseStore is a [Store] that keeps the response of finished work with the claim, so that a copy
// of the request gets the same.
type ResponseStore interface {
	Store

	// CompleteWith is Complete, and keeps r in the same atomic step: a reader that sees the claim done finds
	// the response, and a caller whose token is not current stores nothing. Completing a claim that
	// this token already completed succeeds and keeps the response that is there.
	// Errors: [ErrStale], [ErrNotFound], and [ErrResponseTooLarge] if the store takes none of that size.
	CompleteWith(ctx context.Context, c Claim, r Response) error

	// Response returns what was kept under ref. Purge deletes it with the claim.
	// Errors: [ErrNotFound] if there is none; the claim may still be there.
	Response(ctx context.Context, ref Ref) (Response, error)
}

// TxResponseStore is a [TxStore] that keeps the response in the transaction that holds the claim and
// the effect.
type TxResponseStore[Tx any] interface {
	TxStore[Tx]
	ResponseStore

	// KeepResponse stores r under ref inside tx, in which the caller claimed ref. It becomes visible
	// when tx commits, and replaces what an earlier attempt left there. After an error tx must be
	// rolled back. Errors: [ErrResponseTooLarge] if the store takes none of that size.
	KeepResponse(ctx context.Context, tx Tx, ref Ref, r Response) error
}

// Awaiter is a [ResponseStore] that can tell when work is over that another process does.
type Awaiter interface {
	// Await returns nil once the claim under ref is not processing, at once if it is not now. It may
	// return nil too early, as for a claim in a transaction that is open, and an error when ctx ends or
	// it cannot tell; then the caller asks again after a while.
	Await(ctx context.Context, ref Ref) error
}

// PurgeKind is what a purge deletes. The zero value is [PurgeEvents].
type PurgeKind string

// The kinds of purges. Each is deleted by a purge of its own kind only.
const (
	// PurgeEvents are claims of events and requests that are done, with the responses that are kept. A
	// copy that comes later is new.
	PurgeEvents PurgeKind = "events"
	// PurgeFailed are claims of events and requests that failed or are dead. A copy that comes later is
	// new, and what pinned the key to its content is forgotten. Their rows are what tells that something was
	// received and never done, so keep them for as long as people may ask.
	PurgeFailed PurgeKind = "failed"
	// PurgeOnce are the keys that [Once] took. Work that is asked for again later is done again.
	PurgeOnce PurgeKind = "once"
	// PurgeVersions are the newest versions that [Newer] recorded. Whatever comes later is the newest.
	PurgeVersions PurgeKind = "versions"
	// PurgeStates are where [Transition] left its state machines. They begin anew.
	PurgeStates PurgeKind = "states"
	// PurgeEffects are effects of an outbox that are done. One that is enqueued again later is new.
	PurgeEffects PurgeKind = "effects"
)

// PurgeKinds returns all kinds.
func PurgeKinds() []PurgeKind {
	return []PurgeKind{PurgeEvents, PurgeFailed, PurgeOnce, PurgeVersions, PurgeStates, PurgeEffects}
}

// PurgeRequest says what [Purger.Purge] deletes.
type PurgeRequest struct {
	// Kind is what is deleted.
	Kind PurgeKind
	// Source narrows it to one source; of [PurgeOnce] that is a scope. Empty: all of them, but for the claims of a gateway
	// that handles Idempotency-Key on the same tables, whose sources begin with "gateway:": it forgets them when their time
	// is over, and who asks again before that is carried out twice. Versions and states have none.
	Source string
	// Except are sources, or scopes, that are left alone, where Source is empty.
	Except []string
	// Before is the age: what was last changed before it is deleted. See [PurgeRequest.Span]. A time in the
	// future is refused. One of the last day is not, but outside of tests it is a mistake: copies that are still on
	// their way run again.
	Before time.Time
	// Limit is how many are deleted at most. Not positive: none.
	Limit int
	// Dry deletes nothing, and only counts what there is to delete, up to Limit.
	Dry bool
}

// Validate returns an error that says what is wrong with a request that makes no sense, where now is the store's clock.
func (r PurgeRequest) Validate(now time.Time) error {
	bare := r.Kind == PurgeVersions || r.Kind == PurgeStates
	switch {
	case r.Kind != "" && !slices.Contains(PurgeKinds(), r.Kind):
		return fmt.Errorf("hookonce: purge: there is no kind %q; the kinds are %v", r.Kind, PurgeKinds())
	case r.Before.Truncate(time.Microsecond).After(now): // stores know no less
		return fmt.Errorf("hookonce: purge: %v is in the future: it would delete what was done a moment ago", r.Before)
	case bare && (r.Source != "" || len(r.Except) > 0):
		return fmt.Errorf("hookonce: purge: %s have no source", r.Kind)
	case r.Source != "" && len(r.Except) > 0:
		return fmt.Errorf("hookonce: purge: name one source, or those to leave alone, not both")
	case r.events() && strings.HasPrefix(r.Source, oncePrefix):
		return fmt.Errorf("hookonce: purge: the source %q belongs to Once: use the kind %q, and the scope as the source", r.Source, PurgeOnce)
	}
	return nil
}

func (r PurgeRequest) events() bool {
	return r.Kind == "" || r.Kind == PurgeEvents || r.Kind == PurgeFailed
}

// Over reports whether the request is about claims, or effects, in the given state.
func (r PurgeRequest) Over(state State) bool {
	if r.Kind == PurgeFailed {
		return state == StateFailed || state == StateDead
	}
	return state == StateDone
}

// Covers reports whether the request is about claims, or effects, of the given source as they are stored. It is
// where stores learn that keys of [Once] are no events, and that a gateway's claims are not the caller's.
func (r PurgeRequest) Covers(source string) bool {
	scope, once := strings.CutPrefix(source, oncePrefix)
	switch {
	case r.events() && once, r.Kind == PurgeOnce && !once:
		return false
	case r.events() && r.Source == "" && strings.HasPrefix(source, servicePrefix):
		return false
	case r.Kind == PurgeOnce:
		source = scope
	}
	if r.Source != "" {
		return source == r.Source
	}
	return !slices.Contains(r.Except, source)
}

// Stored returns Source as it is stored with claims and effects. Empty: the request is about several.
func (r PurgeRequest) Stored() string {
	if r.Kind == PurgeOnce && r.Source != "" {
		return oncePrefix + r.Source
	}
	return r.Source
}

// earliest is when the first clocks were right that can have written anything: there was no hookonce before. Clocks
// that lost their power say 1970, 2000, or when their firmware was built.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Span returns the times of last changes that the request lets go, from the first and before the second. A time that
// no clock can have shown says nothing about an age: what was changed before 2020, or will be only after now, is
// never purged by it. `hookonce doctor` names such rows.
func (r PurgeRequest) Span() (from, to time.Time) {
	return earliest, r.Before.UTC()
}

// Purger deletes what was finished long ago. All stores are.
type Purger interface {
	// Purge deletes at most req.Limit of what the request is about, and returns how many. Call it again
	// while it returns the limit: each call is quick, and keeps nobody waiting for long. Work that is not
	// done is never deleted, but by [PurgeFailed]. Several processes may purge at once. Of a kind
	// that the store does not keep there is nothing to delete. Beside an error the number is of those that
	// are known to be deleted. Errors also: those of [PurgeRequest.Validate].
	//
	// A copy of deleted work is not recognised any more. The time must be further back than twice the longest
	// window in which the provider sends again, or late copies run again.
	Purge(ctx context.Context, req PurgeRequest) (int, error)
}
