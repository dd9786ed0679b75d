package hookonce

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// MaxPayload is the largest payload of an [Effect], in bytes.
const MaxPayload = 1 << 20

// Effect is something to do after the commit: a mail, a call to another system. It is stored in the
// transaction that decided it, and carried out by a relay afterwards, at least once and always under
// the same key.
type Effect struct {
	// Ref is the event, or other claim, that asks for the effect. Without a key the effect is known by
	// its number alone.
	Ref
	// Name says who carries it out: the name under which a relay knows a handler, such as
	// "mail.receipt". At most [MaxKeyLen] bytes, printable.
	Name string
	// Step tells the effects of one event apart. Empty means Name: enough where an event asks for one
	// effect of that name. In the form of [NormalKey].
	Step string
	// Payload is what the handler needs; opaque here. At most [MaxPayload] bytes.
	Payload []byte
	// Due is when to begin at the earliest. Zero: at once.
	Due time.Time
}

// Validate returns an error that wraps [ErrInvalidRef] unless e can be stored: its Ref is valid, with or
// without a key, its name is present, name and step are in the form of [NormalKey], and the payload is
// at most [MaxPayload] bytes, and Due is zero or in the years 1 to 9999.
func (e Effect) Validate() error {
	if err := e.Ref.Validate(); err != nil {
		return err
	}
	switch {
	case e.Name == "":
		return fmt.Errorf("%w: the effect has no name", ErrInvalidRef)
	case !wellFormed(e.Name):
		return fmt.Errorf("%w: the effect's name is longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, MaxKeyLen)
	case !wellFormed(e.Step):
		return fmt.Errorf("%w: the effect's step is longer than %d bytes, not UTF-8, or has control characters; pass it through NormalKey", ErrInvalidRef, MaxKeyLen)
	case e.Due.UTC().Year() < 1 || e.Due.UTC().Year() > 9999:
		return fmt.Errorf("%w: the effect is due in the year %d, and only the years 1 to 9999 can be stored", ErrInvalidRef, e.Due.UTC().Year())
	case len(e.Payload) > MaxPayload:
		return fmt.Errorf("%w: the effect's payload has %d bytes, at most %d can be stored", ErrInvalidRef, len(e.Payload), MaxPayload)
	}
	return nil
}

// QueuedEffect is an effect in the outbox, as a relay took it or a person looks at it. Its Step is never
// empty. Its Due is when it will be tried while it is pending or failed, and zero otherwise.
type QueuedEffect struct {
	Effect
	// ID numbers the effect within its outbox. It stays the same over all attempts.
	ID int64
	// State is where it stands: "pending" before the first attempt, else a [State].
	State State
	// Token is the number of the current attempt, from 1, and the fence. Zero while pending.
	Token int64
	// Tries counts the attempts since it was enqueued or last redriven, without those that Deaths counts.
	Tries int
	// Deaths counts the attempts since the last outcome that ended without one, because the process died or
	// the lease was lost otherwise. An effect that has some is a suspect: it may be what ends processes.
	Deaths int
	// Lease is when another relay may take it over, while it is processing.
	Lease time.Time
	// EnqueuedAt and LastError are for people. LastError is the text of the last failure.
	EnqueuedAt time.Time
	LastError  string
}

// StatePending means that nobody has begun yet. Only effects are ever pending.
const StatePending State = "pending"

// Outbox stores effects in the caller's transaction. Tx is the transaction type of the driver.
type Outbox[Tx any] interface {
	EffectQueue
	EffectAdmin

	// Enqueue stores e inside tx; it is there when tx commits. An effect of the same Ref (with a key)
	// and Step that is on record makes it fail with [ErrEffectExists], in whatever state that one is:
	// of two different effects none may get lost. Errors also: [ErrInvalidRef], for a name or step that
	// cannot be stored, or a payload that is too large. After an error tx must be rolled back.
	Enqueue(ctx context.Context, tx Tx, e Effect) error
}

// Enqueue stores e inside tx: it is carried out after tx commits, by a relay, and never if tx rolls back. An
// effect without a reference gets that of the work in ctx. The store is that of ctx (see [ContextWith]),
// and tx a transaction of it: in a handler the one that it was lent, or a savepoint of it, and an error that the handler hides fails
// it. Give each effect of an event a step of its own: see [Outbox] for errors.
func Enqueue[Tx any](ctx context.Context, tx Tx, e Effect) error {
	return inTx(ctx, "Enqueue", tx, func(box Outbox[Tx]) error {
		if e.Ref == (Ref{}) {
			e.Ref, _ = RefFrom(ctx)
		}
		return box.Enqueue(ctx, tx, e)
	})
}

// TakeRequest says which effects [EffectQueue.TakeEffects] takes.
type TakeRequest struct {
	// Names are those of the effects.
	Names []string
	// Limit is how many are taken at most; none if it is not positive.
	Limit int
	// Suspects is how many of them may be suspects: effects whose lease ran out before there was an outcome.
	// Zero, or less: none. They stay where they are then, and hold up no others.
	Suspects int
	// Lease is for how long they are leased. It must be positive.
	Lease time.Duration
}

// EffectQueue is what a relay needs of an outbox. All methods are atomic and safe for concurrent use by
// many processes, take the time from the store's clock, and apply to an effect only while its token is
// current.
type EffectQueue interface {
	// TakeEffects takes effects that are due, oldest due first, and leases them: pending and failed ones
	// whose time has come, which is one more try, and those whose lease ran out, as far as the request lets
	// suspects in, which is one more death. Each gets the next token, and is taken by one caller only. Callers never wait for
	// each other.
	TakeEffects(ctx context.Context, req TakeRequest) ([]QueuedEffect, error)

	// CompleteEffect records that it is done, and clears its deaths; idempotent for the same token. Errors:
	// [ErrStale], [ErrNotFound].
	CompleteEffect(ctx context.Context, e QueuedEffect) error

	// FailEffect records that the attempt failed, to be tried again at retry, or, if f.Dead, never by
	// itself, and clears its deaths. Idempotent for the same token. Errors: [ErrStale], [ErrNotFound].
	FailEffect(ctx context.Context, e QueuedEffect, f Failure, retry time.Time) error

	// ExtendEffect moves the lease to now + d, which must be positive, and returns e with its new lease.
	// Like the others it works after the lease ran out, if nobody took the effect over. Errors:
	// [ErrStale], [ErrNotFound].
	ExtendEffect(ctx context.Context, e QueuedEffect, d time.Duration) (QueuedEffect, error)
}

// EffectAdmin is what people need who look after an outbox, and what deletes from it.
type EffectAdmin interface {
	// Effects lists effects in the given state by ascending number, above after, at most limit.
	Effects(ctx context.Context, s State, after int64, limit int) ([]QueuedEffect, error)

	// RedriveEffect makes a dead effect due at once, with tries and deaths counted from nothing: it is failed
	// then, under the same token. An effect that is not dead stays as it is and answers [ErrStale].
	// Errors also: [ErrNotFound].
	RedriveEffect(ctx context.Context, id int64) error

	// Purger deletes effects that were done long ago ([PurgeEffects]). Keep them as long as claims.
	Purger
}

// EffectKey returns the key under which one step of the work under ref is known to others: the same for
// every attempt, in every process and release, and another one for another source, key or step. It is
// what to send as Idempotency-Key where [Transport] does not: 32 hexadecimal digits, made of the first
// half of the SHA-256 of [JoinKey] over source, key and step. It is empty if one of the three is: what
// cannot be recognised has no key.
func EffectKey(ref Ref, step string) string {
	joined := JoinKey(ref.Source, ref.Key, step)
	if joined == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(joined))
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// IdempotencyKey returns the key under which the effect is known to the system that carries it out, the same for
// every attempt: the [EffectKey] of its reference and step. An effect that was asked for by something
// without a key is told apart by its number and the time at which it was enqueued, because other outboxes
// count from 1, too.
func (e QueuedEffect) IdempotencyKey() string {
	ref := e.Ref
	if ref.Key == "" {
		ref.Key = JoinKey("effect", strconv.FormatInt(e.ID, 10), strconv.FormatInt(e.EnqueuedAt.UnixMicro(), 10))
	}
	return EffectKey(ref, cmp.Or(e.Step, e.Name))
}
