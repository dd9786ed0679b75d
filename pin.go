package hookonce

import (
	"context"
	"sync/atomic"
)

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
