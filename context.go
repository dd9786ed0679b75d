package hookonce

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hookonce/hookonce/internal/sentcalls"
)

// ContextWith returns a context that says what is being worked on: the claim c, in a transaction of
// store, because of ev, which may be nil. [Webhook] and [Idempotent] call it for their handlers; call
// it yourself inside [TxStore.Within]. [Enqueue], [Newer], [Transition] and [Once] find the store in it,
// and [Transport] what its keys are made of. Call it once per attempt: it knows which calls were made.
func ContextWith[Tx any](ctx context.Context, store TxStore[Tx], c Claim, ev *Event) context.Context {
	return &workContext{Context: ctx, work: work{ref: c.Ref, store: store, event: ev}}
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
	event *Event // nil without one

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
	for store != nil {
		if able, ok := any(store).(A); ok {
			return able, nil
		}
		wrapper, ok := store.(interface{ Unwrap() TxStore[Tx] })
		if !ok {
			break
		}
		store = wrapper.Unwrap()
	}
	return none, fmt.Errorf("hookonce: %s: the context's store, a %T, cannot do this, nor can what it wraps", caller, w.store)
}
