package hookonce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxKeyLen is the longest key, in bytes, that is kept as it is. A longer key is replaced by its
// SHA-256 (see [NormalKey]), because database indexes limit the size of a row.
const MaxKeyLen = 255

// Ref names a claim: a key inside the scope of one source. Two sources never share a claim, even
// when their providers use the same identifiers.
type Ref struct {
	// Source is the configured endpoint that the event came in through, such as "billing".
	Source string
	// Key identifies the event inside its source. The empty key means "unkeyed": the event cannot
	// be recognised when it comes again, and is passed through instead of being claimed.
	Key string
}

// String returns the reference in a form for logs: source/key.
func (r Ref) String() string { return r.Source + "/" + r.Key }

// JoinKey builds one key from several parts without ambiguity: every part is preceded by its
// length, so ("ab", "c") and ("a", "bc") differ. If any part is empty the result is the empty key,
// because a key that lacks a required part would collapse different events into one.
// A single part is returned unchanged.
func JoinKey(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	size := 0
	for _, p := range parts {
		size += len("255:") + len(p)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range parts {
		if p == "" {
			return ""
		}
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return b.String()
}

// NormalKey returns the form of key that every store can hold and compare: valid UTF-8, printable,
// at most [MaxKeyLen] bytes. A key that is not in this form is replaced by "sha256:" and the
// hexadecimal SHA-256 of its bytes, so different keys stay different. A key that itself starts with
// "sha256:" is replaced as well, so that nobody can send the digest of another key; NormalKey is
// therefore applied exactly once, where a key is extracted. The empty key stays empty.
func NormalKey(key string) string {
	if wellFormed(key) && !strings.HasPrefix(key, digestPrefix) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// unkeyedPrefix begins the keys of claims that were made for events without one. No key that was extracted
// begins so.
const unkeyedPrefix = digestPrefix + "unkeyed:"

// oncePrefix begins the sources of what [Once] claims. No endpoint may have such a source, or its events
// and what their handlers do once would be mistaken for each other.
const oncePrefix = "once:"

// servicePrefix begins the sources under which gateways claim the requests to a service with an Idempotency-Key. How long
// those are kept is the gateway's to say, whoever else has claims in the same tables.
const servicePrefix = "gateway:"

// Validate returns an error that wraps [ErrInvalidRef] unless the source is present and both parts
// are valid UTF-8, free of control characters and at most [MaxKeyLen] bytes. An empty key is valid.
func (r Ref) Validate() error {
	switch {
	case r.Source == "":
		return fmt.Errorf("%w: the source is empty", ErrInvalidRef)
	case !wellFormed(r.Source):
		return fmt.Errorf("%w: the source is longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, MaxKeyLen)
	case !wellFormed(r.Key):
		return fmt.Errorf("%w: the key is longer than %d bytes, not UTF-8, or has control characters; pass it through NormalKey", ErrInvalidRef, MaxKeyLen)
	}
	return nil
}

// checkSource returns an error unless source can be that of an endpoint.
func checkSource(source string) error {
	if strings.HasPrefix(source, oncePrefix) {
		return fmt.Errorf("%w: sources that begin with %q belong to Once", ErrInvalidRef, oncePrefix)
	}
	return Ref{Source: source}.Validate()
}

func wellFormed(s string) bool {
	if len(s) > MaxKeyLen || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, unicode.IsControl) < 0
}

// Rank is the place of one state of a resource among its other states. The zero value is no rank: nothing
// says which of two states is newer. Make one with [Version] or [Timestamp].
type Rank struct {
	// Kind says what N counts, and so what it means that two are equal. Empty: there is no rank.
	Kind RankKind
	// N is the version number, or the time in microseconds since 1970.
	N int64
}

// RankKind says what a [Rank] is.
type RankKind string

// The kinds of ranks.
const (
	// RankVersion is a number that is higher for each state of the resource. Equal numbers are one state.
	RankVersion RankKind = "version"
	// RankTime is a time. Equal times say nothing: two states can follow each other within one tick of the
	// clock, which is a second for some providers.
	RankTime RankKind = "time"
)

// Version is the rank of a state whose version has that number.
func Version(n int64) Rank { return Rank{RankVersion, n} }

// Timestamp is the rank of a state of that time, to the microsecond. The zero time is no rank.
func Timestamp(t time.Time) Rank {
	if t.IsZero() {
		return Rank{}
	}
	return Rank{RankTime, t.UnixMicro()}
}

// IsZero reports whether there is no rank.
func (r Rank) IsZero() bool { return r == Rank{} }

// String returns kind and number, for logs and errors.
func (r Rank) String() string {
	if r.IsZero() {
		return "no rank"
	}
	return fmt.Sprintf("%s %d", r.Kind, r.N)
}

// Supersedes reports whether a state of rank r is to be applied after one of rank old: its version is
// higher, or its time is not lower. Ranks of two kinds cannot be compared, and then it is: to apply an
// older state is repaired by the next event, to leave a newer one out by none. It is the rule that every
// store applies; without a rank no store is asked.
func (r Rank) Supersedes(old Rank) bool {
	return r.Kind != old.Kind || r.N > old.N || r.N == old.N && r.Kind == RankTime
}

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
	// Busy means that another worker owns the claim. It is no duplicate yet, because the owner may
	// still fail.
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
// Pinned, and nil for the others. Stores return it, wrapped, from [TxStore.Within] and [TxStore.ClaimTx]: a caller
// that looks at the error alone does not take work that another worker holds for work that is done.
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
	case c.Pinned != 0 && req.Conflicts(c.Digest):
		return Pinned
	}
	return Acquired
}

// YieldsTo reports whether the stored claim c gives way to the trace of a failed attempt at time now: it is claimable, and from
// an older attempt. Attempts that began afresh at the same time have the same token; of those, one that gave up is never made
// an ordinary failure again, because its sender was told to stop. The content that a claim is pinned to stays. It is the rule
// that every store applies; see [TxStore.Within].
func (c Claim) YieldsTo(attempt Claim, now time.Time) bool {
	if c.VerdictFor(ClaimRequest{Digest: attempt.Digest}, now) != Acquired {
		return false
	}
	if c.Token == attempt.Token {
		return c.State == StateFailed || c.State == StateDead && attempt.State == StateDead
	}
	return c.Token < attempt.Token
}

// Conflicts reports whether a digest that is stored is known, and differs from the one that is requested. It is the
// rule that every store applies to set [Claim.Conflict].
func (r ClaimRequest) Conflicts(digest []byte) bool {
	return len(r.Digest) > 0 && len(digest) > 0 && !bytes.Equal(r.Digest, digest)
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

// ContextWithPin returns a context for [TxStore.Within], and for the work in it, by which the attempt at ref
// can be pinned: when it fails after [PinRequest] or [Transport] was called under the context, the failure is
// on record as pinned ([Claim.Pinned]), and only a request with the same digest may try again. [Idempotent],
// [IdempotentLease], and [UnderLease] for a request with Pin, call it. Call it once per attempt.
func ContextWithPin(ctx context.Context, ref Ref) context.Context {
	return &pinContext{Context: ctx, ref: ref}
}

// PinRequest says that the work under ctx is about to have an effect outside its transaction, which no rollback
// undoes. If the attempt fails after that, another request under the same Idempotency-Key is refused, because
// it would be told what became of the first; the same request may be sent again. [Transport] calls it for
// requests that change something: call it yourself before calls that are made without. It does nothing in
// handlers of [Webhook], whose senders may correct what they sent. It may be called at any time, by many
// goroutines.
func PinRequest(ctx context.Context) {
	for p := pinFrom(ctx); p != nil; p = pinFrom(p.Context) {
		p.reached.Store(true)
	}
}

// pinContext knows whether an attempt reached the outside.
type pinContext struct {
	context.Context
	ref     Ref
	key     string                                 // that the client sent, without its scope; empty if there is none
	warn    func(ctx context.Context, host string) // of a call by Transport; nil: nobody
	reached atomic.Bool
}

type pinKey struct{}

// Value returns the context itself.
func (p *pinContext) Value(key any) any {
	if key == (pinKey{}) {
		return p
	}
	return p.Context.Value(key)
}

func pinFrom(ctx context.Context) *pinContext {
	p, _ := ctx.Value(pinKey{}).(*pinContext)
	return p
}

// pinned reports whether the attempt at ref under ctx reached the outside.
func pinned(ctx context.Context, ref Ref) bool {
	p := pinFrom(ctx)
	return p != nil && p.ref == ref && p.reached.Load()
}
