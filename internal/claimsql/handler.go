package claimsql

import "errors"

// What a handler had done to the transaction that its store was to end, and returned nil, unless an error says otherwise.
// Each error says what to change. None is an unknown outcome.
var (
	// ErrCommitted says that the work is stored, in more than one transaction.
	ErrCommitted = errors.New("the handler committed the transaction by itself, or a statement of it did in passing; what it did is stored with the claim, " +
		"but a crash in between would have torn it: leave the commit to the store, which makes it when the handler returns nil")
	// ErrTorn says that an attempt failed after the handler had committed the claim: it is open again.
	ErrTorn = errors.New("the handler committed the transaction by itself, or a statement of it did in passing, and it failed after that; the next copy runs it again, which repeats what it had " +
		"committed, because what came after that may be lost: leave the commit to the store, which makes it when the handler returns nil, and rolls " +
		"back when it returns an error")
	// ErrStays says that an attempt failed after the handler had committed the claim, and that the claim stays done, because its row
	// does not tell that nobody else did the work since.
	ErrStays = errors.New("the handler committed the transaction by itself, or a statement of it did in passing, and it failed after that; what came after that may be lost: " +
		"the claim is done, and may be another attempt's by now, so that no copy runs the handler again: look whether all is done, and leave the commit to the store")
	// ErrAlike says that an attempt failed on MySQL while the claim was done as the attempt would have left it.
	ErrAlike = errors.New("the claim is done: either by a copy that won in the same microsecond, or because a statement of the handler committed in passing, and then what came after that is not " +
		"done: look whether all is done, and leave such statements out of handlers")
	// ErrRolledBack says that the handler called Rollback.
	ErrRolledBack = errors.New("the handler rolled the transaction back, and returned nil; nothing of it is stored: return an error to roll back, " +
		"and remove Rollback from the handler, a deferred one as well, because the store ends the transaction")
	// ErrSwept says that a statement rolled the transaction back. What the same text had after a ROLLBACK was not part of the
	// transaction, and may be stored.
	ErrSwept = errors.New("the handler returned nil, but the transaction was rolled back before that, by a statement of the handler's (ROLLBACK), " +
		"or by one whose error it hid (a deadlock, a statement that was interrupted); nothing of it is stored: return such errors")
	// ErrRefused says that the store kept statements from being committed by themselves.
	ErrRefused = errors.New("the handler tried to commit, or it went on after a statement had rolled the transaction back (ROLLBACK, or one " +
		"whose error it hid); the store refused these commits, and nothing is stored: return such errors, and leave the end of the transaction to the store")
	// ErrHidden says that the transaction could only be rolled back.
	ErrHidden = errors.New("the handler returned nil although one of its statements had failed: return the error")
)
