package hookonce

import (
	"context"
	"fmt"
)

// Guards keeps, in the caller's transaction, what tells newer from older and one state from another.
// Every method takes the row's lock until the transaction ends, so that of several at once one decides
// first and the others see what it committed; they wait as long as the database lets them. In a store that decides at the commit (see
// [TxStore.Within]) nobody waits, and the commit fails if the record is another one by then. After an
// error the transaction must be rolled back. A rollback also takes back the records of the guards.
type Guards[Tx any] interface {
	// Newer reports whether a state of that rank is to be applied, which is so if rank
	// [Rank.Supersedes] the one that was recorded last for resource, and records it if so. The first is
	// newer, and what has no rank is, whatever the name; that is not recorded. Errors: [ErrInvalidRef]
	// unless [ValidateResource] accepts name and rank.
	Newer(ctx context.Context, tx Tx, resource string, rank Rank) (bool, error)

	// Transition moves entity from one state to another if it is in from, and returns the state that it is
	// in now and what came of the move. An entity that was never seen is in state "". Errors:
	// [ErrInvalidRef] unless [ValidateTransition] accepts the names.
	Transition(ctx context.Context, tx Tx, entity, from, to string) (state string, move Move, err error)
}

// Move says what came of a [Transition].
type Move string

// The outcomes of a transition.
const (
	// Moved: the entity was in the state to leave, and is in the state to enter now.
	Moved Move = "moved"
	// AlreadyThere: the entity was in the state to enter. The work that the move stands for is done.
	AlreadyThere Move = "already"
	// Impossible: the entity is in neither state. Nothing was changed.
	Impossible Move = "impossible"
)

// MoveOf returns what came of a move to the state to, after which the entity is in state. It is for stores.
func MoveOf(made bool, state, to string) Move {
	switch {
	case state != to:
		return Impossible
	case made:
		return Moved
	}
	return AlreadyThere
}

// ValidateResource returns an error that wraps [ErrInvalidRef] unless the rank can be recorded for resource:
// the name is present and in the form of [NormalKey], and the rank is of a known kind. It is the rule that
// every store applies.
func ValidateResource(resource string, rank Rank) error {
	switch {
	case resource == "" || !wellFormed(resource):
		return fmt.Errorf("%w: %q cannot name a resource: it is empty, longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, resource, MaxKeyLen)
	case rank.Kind != RankVersion && rank.Kind != RankTime:
		return fmt.Errorf("%w: there are no ranks of kind %q; make one with hookonce.Version or hookonce.Timestamp", ErrInvalidRef, rank.Kind)
	}
	return nil
}

// ValidateTransition returns an error that wraps [ErrInvalidRef] unless the names can be stored and the
// move is one: entity and to are present, all are in the form of [NormalKey], and from and to differ.
// Nothing moves to the state "", which means that the entity was never seen. It is the rule that every
// store applies.
func ValidateTransition(entity, from, to string) error {
	switch {
	case entity == "" || !wellFormed(entity):
		return fmt.Errorf("%w: %q cannot name an entity: it is empty, longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, entity, MaxKeyLen)
	case to == "":
		return fmt.Errorf("%w: the state to move to is empty, which stands for an entity that was never moved", ErrInvalidRef)
	case !wellFormed(from) || !wellFormed(to):
		return fmt.Errorf("%w: a state is longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, MaxKeyLen)
	case from == to:
		return fmt.Errorf("%w: a move from %q to itself", ErrInvalidRef, from)
	}
	return nil
}

// Newer reports whether the event's state of its object is to be applied, and records its rank if so, inside
// tx: for events that arrive late or out of order. It goes by [Event.Scope] and [Event.Rank], for each source
// apart. False says that a newer state of the object was applied. An event that names no object, or has no
// rank, is always to be applied: nothing says that it is old.
//
// Of two events with the same time both are applied, in the order of their arrival: nothing says which is
// newer, and to leave one out would lose it. Copies of one event do not come here, its claim stops them.
//
// It is for handlers that write down how an object is, where a newer state makes an older one superfluous. What
// each event must do, such as a booking, does not belong behind it. The store is that of ctx (see
// [ContextWith]), and tx a transaction of it. See [Guards] for what happens at once, and errors.
func Newer[Tx any](ctx context.Context, tx Tx, ev *Event) (bool, error) {
	if ev.Scope == "" {
		return true, nil
	}
	return NewerRank(ctx, tx, NormalKey(JoinKey(ev.Source, ev.Scope)), ev.Rank)
}

// NewerRank is [Newer] for names and ranks of your own. Resources of all sources share one table: put into
// the name what tells them apart ([JoinKey]). A rank of another kind than the recorded one is newer and takes
// its place, as when a provider that had times begins to send versions: see [Rank.Supersedes].
func NewerRank[Tx any](ctx context.Context, tx Tx, resource string, rank Rank) (bool, error) {
	var newer bool
	err := inTx(ctx, "Newer", tx, func(g Guards[Tx]) (err error) {
		newer, err = g.Newer(ctx, tx, resource, rank)
		return err
	})
	return newer, err
}

// Transition moves entity from one state to another, inside tx, if it is in from, and returns the state
// that it is in now and what came of the move: so that an order is shipped once, however many events say so.
// A second event that says so finds it [AlreadyThere], which is no error; or [Impossible], if it has gone on
// to another state by then, or is not yet in from: the state tells. The state is empty for an entity that was
// never moved. The store is that of ctx (see [ContextWith]), and tx a transaction of it. See [Guards] for
// what happens at once, and errors.
func Transition[Tx any](ctx context.Context, tx Tx, entity, from, to string) (state string, move Move, err error) {
	err = inTx(ctx, "Transition", tx, func(g Guards[Tx]) (err error) {
		state, move, err = g.Transition(ctx, tx, entity, from, to)
		return err
	})
	return state, move, err
}

// Once reports whether the work under key is the caller's to do, inside tx: one fee per payout, whichever
// event asks for it. True means do it now: the key is taken when tx commits, and free again when it rolls
// back. False means that it is done, by another transaction, or earlier in this one. Scope is a name for
// the kind of work, such as "payout.fee"; equal keys in two scopes have nothing to do with each other. The
// key may be any text but the empty one. Of several transactions at once one goes on, and the others wait
// for it, as long as the database lets them.
//
// The store is that of ctx (see [ContextWith]), and tx a transaction of it. The keys are claims under the
// source "once:" and the scope, and are kept until
// a purge of just these is asked for ([PurgeOnce]). Errors: [ErrBusy] if the key is held under
// a lease elsewhere, [ErrInvalidRef]. After an error tx must be rolled back.
func Once[Tx any](ctx context.Context, tx Tx, scope, key string) (bool, error) {
	var c Claim
	err := inTx(ctx, "Once", tx, func(store TxStore[Tx]) (err error) {
		if scope == "" || key == "" {
			return fmt.Errorf("hookonce: Once(%q, %q): %w: scope and key must not be empty", scope, key, ErrInvalidRef)
		}
		c, err = store.ClaimTx(ctx, tx, ClaimRequest{Ref: Ref{Source: oncePrefix + scope, Key: NormalKey(key)}})
		return err
	})
	return c.Verdict == Acquired && err == nil, err
}
