package hookonce

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/recorder"
)

// Errors that callers tell apart with [errors.Is]. Stores wrap them with what happened.
var (
	// ErrInvalidRef says that a source or key cannot be stored. Nothing was written.
	ErrInvalidRef = errors.New("hookonce: invalid source or key")
	// ErrBusy says that another worker holds the claim and did not finish within the bounded wait.
	// Nothing was written, and nothing may be acknowledged, because that worker may still fail; trying
	// again later is right.
	ErrBusy = errors.New("hookonce: the claim is held by another worker")
	// ErrPinned says that an earlier attempt under the key, with other content, may have had effects outside
	// (see [Claim.Pinned]). Nothing was written. The first request may be tried again; other content needs
	// another key.
	ErrPinned = errors.New("hookonce: the key is bound to the content of an earlier attempt")
	// ErrTooManyKeys is for stores that bound how many keys a caller may bring: Claim and Within return it for one that was
	// never seen, marked with [RetryAfter], and has written nothing. [Idempotent] and [IdempotentLease] answer 429.
	ErrTooManyKeys = errors.New("hookonce: too many new keys")
	// ErrStale says that the token is not current any more: the lease ran out and another worker
	// took the claim over. The caller no longer owns the work and must not record its outcome.
	ErrStale = errors.New("hookonce: the claim was taken over by another worker")
	// ErrNotFound says that no claim exists under that reference.
	ErrNotFound = errors.New("hookonce: no such claim")
	// ErrNoSecret is wrapped by errors of [Provider.Open] and Sign where every secret is before its from or past its until. It is
	// no rejection, and nothing that passes by itself: a secret that was not renewed is a fault of this side.
	ErrNoSecret = errors.New("hookonce: no secret is valid at this time: every one is before its from or past its until; add the current one")
	// ErrUnknownOutcome says that the connection was lost while a commit was under way. The work may
	// or may not be durable: answer 503, and let the sender's retry read the truth.
	ErrUnknownOutcome = errors.New("hookonce: the outcome of the commit is unknown")
	// ErrTraceLost says that a handler's failure could not be recorded in the table of claims, or
	// that a [Permanent] or a pinned one was not because the key belongs to another attempt by now. The
	// transaction was rolled back all the same, and the next copy of the event reads what holds, or
	// tries again.
	ErrTraceLost = errors.New("hookonce: the failure could not be recorded")
	// ErrEffectExists says that the transaction's event has already asked for an effect with the same
	// step. Give each effect of an event a step of its own.
	ErrEffectExists = errors.New("hookonce: the event already has an effect with this step")
	// ErrUnnamedCall says that [Transport] cannot tell two calls of one attempt apart, and did not send the
	// second. Name each of them with [WithStep].
	ErrUnnamedCall = errors.New("hookonce: the call needs a step of its own")
	// ErrResponseTooLarge says that a handler wrote a longer answer than may be kept (see [WithMaxResponse]), or
	// than the store takes. Nothing of it was kept or sent.
	ErrResponseTooLarge = recorder.ErrTooLarge
	// ErrRollback is returned by a handler of [Idempotent] to undo its work and keep its answer: what it wrote
	// through tx is rolled back, and what it wrote to the client is recorded and given to every copy, such as
	// that a card was declined. Wrap it with the reason. An answer that is not kept otherwise (see [WithKeep])
	// is not kept with it. If the handler wrote no answer, or one below 400, which says that the work is done, it
	// is a failure like any other: 503, with a trace that says so, and the next copy runs the handler again.
	ErrRollback = errors.New("hookonce: the work is undone and its answer kept")
	// ErrSchemaNewer says that the database was migrated by a newer program than this one, to a version beside
	// which this one may not run.
	ErrSchemaNewer = errors.New("hookonce: the database schema is newer than this program")
	// ErrSchemaMissing says that the tables are not there or not current: run the migrations.
	ErrSchemaMissing = errors.New("hookonce: the database schema is missing or out of date")
)

// Permanent marks a handler's error as one that trying again cannot mend. The claim becomes dead
// instead of failed, and the provider is told to stop (its normal success answer): the failure is
// durable in the table of claims, where a replay or a redelivery can still re-drive it. A failure
// that is not on record cannot be acknowledged without losing the event. So the provider is still
// answered 503, and goes on sending, when the event has no key (but see [WithUnkeyedRecord]), when the
// record could not be written, and when another copy got to the key before it was. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err was marked with [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter marks a handler's error with the time after which trying again makes sense. The sender
// is answered 503 with that Retry-After, rounded up to whole seconds; without a positive d it is the
// usual one. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{d, err}
}

// RetryDelay returns the delay set with [RetryAfter], and whether one was set.
func RetryDelay(err error) (time.Duration, bool) {
	var r *retryAfterError
	if errors.As(err, &r) {
		return r.after, true
	}
	return 0, false
}

type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return fmt.Sprintf("%v (retry after %v)", e.err, e.after) }
func (e *retryAfterError) Unwrap() error { return e.err }

// Forget marks a handler's error as a refusal: nothing was done, and nothing is worth a record, such as for a
// caller without the right to ask. A first attempt then leaves no trace, so that strangers do not fill the
// table. Later attempts, and those that reached the outside, are recorded as usual. Forget(nil) is nil.
func Forget(err error) error {
	if err == nil {
		return nil
	}
	return &forgetError{err}
}

type forgetError struct{ err error }

func (e *forgetError) Error() string { return e.err.Error() }
func (e *forgetError) Unwrap() error { return e.err }

// workError is what a handler returned, inside what a store makes of it. What the handler met, such as that the trace of
// another claim was lost, is so told from what became of its own.
type workError struct{ err error }

func (e *workError) Error() string { return e.err.Error() }
func (e *workError) Unwrap() error { return e.err }

// ofWork marks the error of a handler. ofWork(nil) is nil.
func ofWork(err error) error {
	if err == nil {
		return nil
	}
	return &workError{err}
}

// isAround is [errors.Is] for what err wraps besides the error of a handler.
func isAround(err, target error) bool {
	switch e := err.(type) {
	case *workError:
		return false
	case interface{ Unwrap() error }:
		return err == target || isAround(e.Unwrap(), target)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return isAround(err, target) })
	}
	return err == target
}
