package hookonce

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// State is where a claim stands. The zero State is not valid.
type State string

// The states of a claim. A claim in the library's atomic mode appears as done when the transaction
// commits, or not at all; processing is visible in lease mode only.
const (
	// StateProcessing means that a worker holds the claim under a token and, unless the claim has
	// no deadline, a lease.
	StateProcessing State = "processing"
	// StateDone means that the effect happened. It is final: a copy of the event is a duplicate.
	StateDone State = "done"
	// StateFailed means that the last attempt failed; the next copy of the event tries again.
	StateFailed State = "failed"
	// StateDead means that the work was given up: attempts used up, or a permanent error. A replay
	// or a redelivery tries again.
	StateDead State = "dead"
)

// Verdict is the answer to an attempt to claim.
type Verdict int

// The verdicts.
const (
	// Acquired means that the caller owns the claim and does the work. Token above 1 means that earlier
	// attempts were made.
	Acquired Verdict = iota + 1
	// Duplicate means that the work is done; there is nothing to do.
	Duplicate
	// Busy means that another worker owns the claim. Nobody may call this a duplicate yet: the
	// owner may still fail.
	Busy
	// Unkeyed means that the event has no key: it cannot be recognised again, and the work is done
	// without a claim.
	Unkeyed
	// Pinned means that an earlier attempt with other content may have had effects outside (see
	// [Claim.Pinned]): only the same request may be tried again, and this one is another.
	Pinned
)

// String returns the verdict as it appears in logs and answers.
func (v Verdict) String() string {
	switch v {
	case Acquired:
		return "accepted"
	case Duplicate:
		return "duplicate"
	case Busy:
		return "busy"
	case Unkeyed:
		return "unkeyed"
	case Pinned:
		return "pinned"
	}
	return "unknown"
}

// Err returns the error with which a transaction's claim is refused: [ErrBusy] for Busy, [ErrPinned] for
// Pinned, and nil for the others. Stores return it, wrapped, from [TxStore.Within] and [TxStore.ClaimTx], so that nobody who looks
// at the error alone takes work that somebody else holds for work that is done.
func (v Verdict) Err() error {
	switch v {
	case Busy:
		return ErrBusy
	case Pinned:
		return ErrPinned
	}
	return nil
}

// ClaimRequest says what to claim.
type ClaimRequest struct {
	Ref
	// Type is the event's type, kept with the claim for people who look at the table. May be empty.
	Type string
	// Digest identifies the content: a later claim of the same key with another digest is a
	// conflict, flagged and never dropped silently. At most 32 bytes; empty means not compared.
	Digest []byte
	// Lease is how long the claim is held in lease mode before another worker may take it over.
	// Zero means no deadline: the claim is never stolen, and only Complete or Fail ends it.
	// Ignored by the transactional methods. Negative is treated as already expired.
	Lease time.Duration
	// Pin binds the claim to Digest until the attempt's failure takes that back: see [Claim.Pinned]. So
	// an attempt that never comes to an outcome, because its process died, is bound as well. Ignored by
	// the transactional methods, whose traces of failures say it: see [FailureOf].
	Pin bool
}

// Claim is what a store knows about a claim at the moment of asking.
type Claim struct {
	Ref
	// Verdict is the answer to the request. Zero in the result of Lookup.
	Verdict Verdict
	// State is the stored state. For Acquired it is StateProcessing in lease mode and StateDone (not yet
	// committed) inside a transaction. Empty for Unkeyed.
	State State
	// Token is the number of the current attempt, from 1, and the fence: Complete, Fail and Extend
	// apply only while it is current. Zero for Unkeyed.
	Token int64
	// Lease is when the claim may be taken over. Zero: no deadline.
	Lease time.Time
	// Conflict reports that the stored digest differs from the requested one. It is also set on a
	// claim that was won again with other content after a failure.
	Conflict bool
	// Pinned is the number of the first attempt that may have had effects outside, 0 if there is none. The
	// claim is bound to its Digest from then on: a request with another one is not given the claim. Only the
	// failure of that same attempt can take it back (see [Failure]); later ones cannot, because what the
	// first did outside is still there. It means nothing once the work is done.
	Pinned int64
	// Type, Digest, FirstSeen, UpdatedAt and LastError describe the stored claim. LastError is the
	// text of the last failure, at most [MaxErrorLen] bytes, empty if there was none.
	Type      string
	Digest    []byte
	FirstSeen time.Time
	UpdatedAt time.Time
	LastError string
}

// VerdictFor returns what a store answers at time now to a request for the stored claim c: Acquired if the request
// may take it over. It is the rule that every store implements in its claiming statement. Done work is a
// duplicate. Processing work is busy until its lease has run out, for ever if it has none. Failed and dead
// work can be tried again, and so can work whose lease ran out, unless it is pinned and both digests are known
// and differ.
func (c Claim) VerdictFor(req ClaimRequest, now time.Time) Verdict {
	switch {
	case c.State == StateDone:
		return Duplicate
	case c.State == StateProcessing && (c.Lease.IsZero() || c.Lease.After(now)):
		return Busy
	case c.Pinned != 0 && differ(c.Digest, req.Digest):
		return Pinned
	}
	return Acquired
}

// MaxErrorLen is how much of an error's text a store keeps, in bytes.
const MaxErrorLen = 1000

// Failure describes a failed attempt.
type Failure struct {
	// Err is what went wrong. Its text is stored, cut to [MaxErrorLen] bytes and made valid UTF-8.
	Err error
	// Dead ends the work instead of leaving it to the next copy of the event.
	Dead bool
	// Pin says that the attempt may have had effects outside, so that only a request with the same digest
	// may try again: see [Claim.Pinned]. False takes back what this attempt pinned, and nothing that an
	// earlier one did.
	Pin bool
	// Forget says that nothing is worth a record, such as a refusal before anything was done. It counts for
	// a first attempt that is neither pinned nor dead: see [Failure.Forgets]. Others are recorded.
	Forget bool
}

// FailureOf describes the failed attempt at ref that ended with err: dead if err is marked with [Permanent],
// to be forgotten if with [Forget], and pinned if [PinRequest] or [Transport] was called meanwhile under ctx,
// which comes from [ContextWithPin] for the same ref. Every store leaves its traces by it.
func FailureOf(ctx context.Context, ref Ref, err error) Failure {
	var f *forgetError
	return Failure{Err: err, Dead: IsPermanent(err), Pin: pinned(ctx, ref), Forget: errors.As(err, &f)}
}

// Forgets reports whether the failure of the attempt with that number leaves no row at all, so that the key
// is as if it was never seen.
func (f Failure) Forgets(token int64) bool { return f.Forget && !f.Pin && !f.Dead && token == 1 }

// State returns the state that the failure leaves the claim in: failed, or dead.
func (f Failure) State() State {
	if f.Dead {
		return StateDead
	}
	return StateFailed
}

// Text returns the text of Err in the form that every store can hold: valid UTF-8 without NUL, cut
// to [MaxErrorLen] bytes between characters. It is empty if Err is nil.
func (f Failure) Text() string {
	if f.Err == nil {
		return ""
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(f.Err.Error(), "\x00", "\uFFFD"), "\uFFFD")
	if len(text) <= MaxErrorLen {
		return text
	}
	end := MaxErrorLen
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
