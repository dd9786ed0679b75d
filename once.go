package hookonce

import (
	"context"
	"fmt"
	"strings"
)

// oncePrefix begins the sources of what [Once] claims. No endpoint may have such a source, or its events
// and what their handlers do once would be mistaken for each other.
const oncePrefix = "once:"

// Once reports whether the work under key is the caller's to do, inside tx: one fee per payout, whichever
// event asks for it. True means do it now: the key is taken when tx commits, and free again when it rolls
// back. False means that it is done, by another transaction, or earlier in this one. Scope is a name for
// the kind of work, such as "payout.fee"; equal keys in two scopes have nothing to do with each other. The
// key may be any text but the empty one. Of several transactions at once one goes on, and the others wait
// for it, as long as the database lets them.
//
// The store is that of ctx (see [ContextWith]), and tx a transaction of it. The keys are claims under the
// source "once:" and the scope, and are kept until
// somebody asks for the purge of just these ([PurgeOnce]). Errors: [ErrBusy] if the key is held under
// a lease elsewhere, [ErrInvalidRef]. After an error tx must be rolled back.
func Once[Tx any](ctx context.Context, tx Tx, scope, key string) (bool, error) {
	store, err := storeFrom[TxStore[Tx], Tx](ctx, "Once")
	if err != nil {
		return false, err
	}
	if scope == "" || key == "" {
		return false, fmt.Errorf("hookonce: Once(%q, %q): %w: scope and key must not be empty", scope, key, ErrInvalidRef)
	}
	c, err := store.ClaimTx(ctx, tx, ClaimRequest{Ref: Ref{Source: oncePrefix + scope, Key: NormalKey(key)}})
	return c.Verdict == Acquired && err == nil, err
}

// checkSource returns an error unless source can be that of an endpoint.
func checkSource(source string) error {
	if strings.HasPrefix(source, oncePrefix) {
		return fmt.Errorf("%w: sources that begin with %q belong to Once", ErrInvalidRef, oncePrefix)
	}
	return Ref{Source: source}.Validate()
}
