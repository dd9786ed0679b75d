package hookonce

import (
	"context"
	"fmt"
)

// Guards keeps, in the caller's transaction, what tells newer from older and one state from another.
// Every method takes the row's lock until the transaction ends, so that of several at once one decides
// first and the others see what it committed; they wait as long as the database lets them. After an
// error the transaction must be rolled back. What a guard recorded goes with a rollback.
type Guards[Tx any] interface {
	// Newer reports whether version is higher than the highest that was recorded for resource, and
	// records it if so. The first version of a resource is newer. Errors: [ErrInvalidRef] unless
	// [ValidateResource] accepts the name.
	Newer(ctx context.Context, tx Tx, resource string, version int64) (bool, error)

	// Transition moves entity from one state to another if it is in from, and reports whether it did
	// and which state it is in now. An entity that was never seen is in state "". Errors:
	// [ErrInvalidRef] unless [ValidateTransition] accepts the names.
	Transition(ctx context.Context, tx Tx, entity, from, to string) (state string, moved bool, err error)
}

// ValidateResource returns an error that wraps [ErrInvalidRef] unless resource can name what has versions:
// it is present and in the form of [NormalKey]. It is the rule that every store applies.
func ValidateResource(resource string) error {
	if resource == "" || !wellFormed(resource) {
		return fmt.Errorf("%w: %q can not name a resource: it is empty, longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, resource, MaxKeyLen)
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
		return fmt.Errorf("%w: %q can not name an entity: it is empty, longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, entity, MaxKeyLen)
	case to == "":
		return fmt.Errorf("%w: nothing moves to the state of what was never seen", ErrInvalidRef)
	case !wellFormed(from) || !wellFormed(to):
		return fmt.Errorf("%w: a state is longer than %d bytes, not UTF-8, or has control characters", ErrInvalidRef, MaxKeyLen)
	case from == to:
		return fmt.Errorf("%w: a move from %q to itself", ErrInvalidRef, from)
	}
	return nil
}

// Newer reports whether version is the newest of resource that was applied, and records it if so, inside
// tx: for events that arrive out of order. The store is that of ctx (see [ContextWith]), and tx a
// transaction of it. Resources of all sources share one table: put into the name what tells them apart
// ([JoinKey]), or use [Event.Scope] with [Event.Rank]. See [Guards] for what happens at once, and errors.
func Newer[Tx any](ctx context.Context, tx Tx, resource string, version int64) (bool, error) {
	g, err := storeFrom[Guards[Tx], Tx](ctx, "Newer")
	if err != nil {
		return false, err
	}
	return g.Newer(ctx, tx, resource, version)
}

// Transition moves entity from one state to another, inside tx, if it is in from, and returns the state
// that it is in now and whether it moved: so that an order is shipped once, however many events say so.
// The state is empty for an entity that was never moved. The store is that of ctx (see [ContextWith]),
// and tx a transaction of it. See [Guards] for what happens at once, and errors.
func Transition[Tx any](ctx context.Context, tx Tx, entity, from, to string) (state string, moved bool, err error) {
	g, err := storeFrom[Guards[Tx], Tx](ctx, "Transition")
	if err != nil {
		return "", false, err
	}
	return g.Transition(ctx, tx, entity, from, to)
}
