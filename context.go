package hookonce

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/hookonce/hookonce/internal/sentcalls"
)

// ContextWith returns a context that says what is being worked on: the claim c, in a transaction of
// store, because of ev, which may be nil. [Webhook] and [Idempotent] call it for their handlers; call
// it yourself inside [TxStore.Within]. [Enqueue], [Newer], [Transition] and [Once] find the store in it,
// and [Transport] what its keys are made of. Call it once per attempt: it knows which calls were made.
func ContextWith[Tx any](ctx context.Context, store TxStore[Tx], c Claim, ev *Event) context.Context {
	return &workContext{Context: ctx, work: work{ref: c.Ref, store: store, event: ev}}
}

// lend is [ContextWith] for a handler that is lent tx.
func lend[Tx any](ctx context.Context, store TxStore[Tx], c Claim, ev *Event, tx Tx) *workContext {
	return &workContext{Context: ctx, work: work{ref: c.Ref, store: store, event: ev, tx: tx}}
}

// ContextWithRef is [ContextWith] for work without a transaction: under a lease, or for an effect that
// a relay carries out. [Transport] derives its keys from ref. Call it once per attempt.
func ContextWithRef(ctx context.Context, ref Ref) context.Context {
	return &workContext{Context: ctx, work: work{ref: ref}}
}

// EventFrom returns the event that is being handled, or nil if there is none.
func EventFrom(ctx context.Context) *Event {
	if w := workFrom(ctx); w != nil {
		return w.event
	}
	return nil
}

// RefFrom returns the claim that is being worked on, and whether there is one. Its key is empty for work
// that is done without a claim: for an event without a key, and for one that only says that something
// changed ([Event.Coalesce]).
func RefFrom(ctx context.Context) (Ref, bool) {
	if w := workFrom(ctx); w != nil {
		return w.ref, true
	}
	return Ref{}, false
}

// workContext carries work. It is a context of its own, not a value in one, so that a handler costs one
// allocation.
type workContext struct {
	context.Context
	work work
}

// work is one attempt at something.
type work struct {
	ref   Ref
	store any    // a TxStore of some type of transaction; nil without one
	tx    any    // the transaction that the handler was lent; nil without one, and where the caller of ContextWith has it
	event *Event // nil without one

	failed atomic.Pointer[failedCall] // the first that failed in tx

	calls sentcalls.Set // without a step; for Transport
}

type (
	workKey struct{}
	stepKey struct{}
)

// Value returns the work, and hides a step of the work around it.
func (c *workContext) Value(key any) any {
	switch key {
	case workKey{}:
		return &c.work
	case stepKey{}:
		return nil
	}
	return c.Context.Value(key)
}

func workFrom(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// failedCall is a call of [Enqueue] or of a guard.
type failedCall struct {
	name string
	err  error
}

// unreturned returns the error of a call in the transaction that a handler did not return: nothing of the transaction may stay
// then, and what the call was to do would be lost.
func (w *work) unreturned() error {
	if f := w.failed.Load(); f != nil {
		return fmt.Errorf("hookonce: the handler returned nil although %s had failed: return its error: %w", f.name, f.err)
	}
	return nil
}

// inTx has the store of ctx, as an A, which is TxStore[Tx] or more, do something in tx. Where ctx is that of a handler, tx is the
// transaction that it was lent, or a part of it: what is decided in another one would stay if the handler failed.
func inTx[A, Tx any](ctx context.Context, caller string, tx Tx, do func(A) error) error {
	store, err := storeFrom[A, Tx](ctx, caller)
	w := workFrom(ctx)
	if w == nil || w.tx == nil {
		if err == nil {
			err = do(store)
		}
		return err
	}
	lent, _ := w.tx.(Tx)
	part := err == nil && !equal(lent, tx) // which the handler may undo, and go on
	switch {
	case err != nil:
	case part && !sameTx(w.store.(TxStore[Tx]), lent, tx):
		part, err = false, fmt.Errorf("hookonce: %s: that is not the transaction that the handler got, and would not be rolled back with it: pass that one", caller)
	default:
		err = do(store)
	}
	if err != nil && !part {
		w.failed.CompareAndSwap(nil, &failedCall{caller, err})
	}
	return err
}

// sameTx reports whether b is a part of a, which store knows by its method SameTx where a transaction and its parts are several
// values. Without that method only another value of the same type is known to be none.
func sameTx[Tx any](store TxStore[Tx], a, b Tx) bool {
	if s, ok := as[interface{ SameTx(a, b Tx) bool }](store); ok {
		return s.SameTx(a, b)
	}
	return reflect.TypeOf(a) != reflect.TypeOf(b) || !reflect.ValueOf(a).Comparable()
}

// equal reports whether a and b are the same, which is not known of what cannot be compared.
func equal(a, b any) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// storeFrom returns the store of ctx as an A, which is TxStore[Tx] or more. A wrapper that is less is
// looked through, if it has a method Unwrap() TxStore[Tx].
func storeFrom[A, Tx any](ctx context.Context, caller string) (A, error) {
	var none A
	w := workFrom(ctx)
	if w == nil || w.store == nil {
		return none, fmt.Errorf("hookonce: %s: the context has no store: pass on the context that the handler got, or bind a store with ContextWith", caller)
	}
	store, ok := w.store.(TxStore[Tx])
	if !ok {
		return none, fmt.Errorf("hookonce: %s: the context's store is a %T, which has no transactions of type %v: pass the transaction as the handler got it", caller, w.store, reflect.TypeFor[Tx]())
	}
	if able, ok := as[A](store); ok {
		return able, nil
	}
	return none, fmt.Errorf("hookonce: %s: the context's store, a %T, cannot do this, nor can what it wraps", caller, w.store)
}

// as returns the store as an A, or what it wraps.
func as[A, Tx any](store TxStore[Tx]) (able A, ok bool) {
	for store != nil {
		if able, ok = any(store).(A); ok {
			return able, true
		}
		wrapper, wraps := store.(interface{ Unwrap() TxStore[Tx] })
		if !wraps {
			break
		}
		store = wrapper.Unwrap()
	}
	return able, false
}
