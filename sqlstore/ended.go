package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ended"
)

// intact reports whether the transaction is still the one with the mark. A connection where it is not, or where
// that cannot be told, is not as the store has made it: the locks of LOCK TABLES, for one, outlive a ROLLBACK.
func (a *attempt) intact(ctx context.Context) (intact bool, err error) {
	intact, err = a.store.dialect.unmark(ctx, a.tx, a.number)
	a.looked, a.on.lost = true, !intact || err != nil
	return intact, err
}

// inspect looks, before the rollback of an attempt that failed with cause, whether the transaction was over
// already, where statements commit in passing. It knows of one error that rolls back: the copy that then won at the
// same microsecond as this attempt would look like it.
func (a *attempt) inspect(ctx context.Context, cause error) {
	if a.tx == nil || a.looked || a.on.hold == (setting{}) {
		return
	}
	if !a.detach() { // it is being rolled back
		a.on.lost = true
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liftDeadline)
	defer cancel()
	intact, err := a.intact(ctx)
	a.torn = err == nil && !intact && contendedMySQL(cause) != again
}

// ended ends an attempt whose transaction was over before the store's commit, and returns the error that names
// the reason. By tells that it was ended with a method of the transaction.
func (a *attempt) ended(ctx context.Context, by bool) error {
	veto := a.on.veto
	switch {
	case veto != nil && veto.refused.Load():
		return ended.ErrRefused
	case veto != nil && by:
		return ended.ErrRolledBack
	case veto != nil:
		return ended.ErrSwept
	}
	var q querier = a.tx
	if by {
		a.rollback() // which frees the connection
		q = a.store.db
	}
	look := func() (bool, error) { return a.store.dialect.committed(a.store.dialect, ctx, q, a.claim, a.number) }
	committed, err := look()
	if mysqlNumber(err) == 1100 { // ER_TABLE_NOT_LOCKED: after LOCK TABLES a connection reads nothing else
		q = a.store.db
		committed, err = look()
	}
	switch {
	case err != nil:
		a.torn = !by
		return fmt.Errorf("%w: the handler ended the transaction, and whether it committed cannot be told: %w: leave the end of the transaction to the store",
			hookonce.ErrUnknownOutcome, err)
	case committed && !by:
		return a.complete(ctx)
	case committed:
		return ended.ErrCommitted
	case by:
		return ended.ErrRolledBack
	}
	return ended.ErrSwept
}

// complete commits what the handler did after it had committed the claim: nothing would do it again.
func (a *attempt) complete(ctx context.Context) error {
	if _, err := a.tx.ExecContext(ctx, "COMMIT"); err != nil && !strings.Contains(err.Error(), "no transaction is active") {
		return fmt.Errorf("%w: %w: %w", hookonce.ErrUnknownOutcome, ended.ErrCommitted, err)
	}
	return ended.ErrCommitted
}

// savepoint returns what leaves a mark that is gone when the transaction is, and what looks for it. Its name is one
// that no handler gives to a savepoint of its own, and stays the same, because servers keep figures for each text.
func savepoint() (mark func(context.Context, *sql.Tx, int64) (int64, error), unmark func(context.Context, *sql.Tx, int64) (bool, error)) {
	name := fmt.Sprintf("hookonce_%016x", rand.Uint64())
	mark = func(ctx context.Context, tx *sql.Tx, number int64) (int64, error) {
		_, err := tx.ExecContext(ctx, "SAVEPOINT "+name)
		return number, err
	}
	unmark = func(ctx context.Context, tx *sql.Tx, _ int64) (intact bool, err error) {
		_, err = tx.ExecContext(ctx, "RELEASE SAVEPOINT "+name)
		if err != nil && (mysqlNumber(err) == 1305 || strings.Contains(err.Error(), "no such savepoint")) { // ER_SP_DOES_NOT_EXIST
			return false, nil
		}
		return err == nil, err
	}
	return mark, unmark
}

// committedClaim looks for the claim as the attempt made it, to the microsecond. Another attempt's has another
// token, or was made later.
func committedClaim(d dialect, ctx context.Context, q querier, c hookonce.Claim, _ int64) (bool, error) {
	if c.Key == "" {
		return false, errors.New("the event has no key to look it up by")
	}
	var stored hookonce.Claim
	found, err := one(ctx, q, d.lookup, []any{c.Source, c.Key}, fields(&stored)...)
	return found && stored.State == hookonce.StateDone && stored.Token == c.Token &&
		stored.FirstSeen.Equal(c.FirstSeen) && stored.UpdatedAt.Equal(c.UpdatedAt), err
}
