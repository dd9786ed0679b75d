package hookonce

import "context"

// Guards keeps, in the caller's transaction, what tells newer from older and one state from another.
// Every method takes the row's lock until the transaction ends, so that of several at once one decides
// first and the others see what it committed; they wait as long as the database lets them. After an
// error the transaction must be rolled back. What a guard recorded goes with a rollback.
type Guards[Tx any] interface {
	// Newer reports whether version is higher than the highest that was recorded for resource, and
	// records it if so. The first version of a resource is newer. Errors: [ErrInvalidRef] for a
	// resource that is empty or can not be stored.
	Newer(ctx context.Context, tx Tx, resource string, version int64) (bool, error)

	// Transition moves entity from one state to another if it is in from, and reports whether it did
	// and which state it is in now. An entity that was never seen is in state "". Errors:
	// [ErrInvalidRef] for an entity that is empty or a name that can not be stored; from and to must
	// differ.
	Transition(ctx context.Context, tx Tx, entity, from, to string) (state string, moved bool, err error)
}
