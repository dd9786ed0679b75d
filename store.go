package hookonce

import (
	"context"
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
	// event: as [Failure] says for everybody, for a request with the same digest only, or as if it had never
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
	// The trace never overwrites done work, a lease that somebody holds, a newer attempt or other content
	// that the claim is pinned to, and never makes dead work of the same attempt number failed: another copy
	// may have got to the key between the rollback and the trace. When the trace cannot be written, the
	// returned error wraps [ErrTraceLost] besides fn's error. So it does when the trace of a [Permanent]
	// error, or of an attempt that reached the outside, gives way, whatever it gave way to: nothing says that
	// the work was given up, and nobody may be told so. The next copy of the event reads what holds instead;
	// it is a duplicate if the work is done.
	//
	// An error that wraps [ErrUnknownOutcome] means that the connection was lost during the commit.
	// fn must not commit or roll back tx, and must not use it after returning. ctx bounds the whole
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
