package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ended"
)

// ended ends an attempt whose transaction was over before the store's commit, and returns the error that names
// the reason. By tells that it was ended with a method of the transaction.
func (a *attempt) ended(ctx context.Context, by bool) error {
	veto := a.on.veto
	switch {
	case veto != nil && veto.refused.Load():
		return ended.Refused
	case veto != nil && by:
		return ended.RolledBack
	case veto != nil:
		return ended.Swept
	}
	var q querier = a.tx
	if by {
		a.rollback() // which frees the connection
		q = a.store.db
	}
	committed, err := a.store.dialect.committed(a.store.dialect, ctx, q, a.claim, a.number)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the handler ended the transaction, and whether it committed can not be told: %w: leave the end of the transaction to the store",
			hookonce.ErrUnknownOutcome, err)
	case committed && !by:
		return a.complete(ctx)
	case committed:
		return ended.Committed
	case by:
		return ended.RolledBack
	}
	return ended.Swept
}

// complete commits what the handler did after it had committed the claim: nothing would do it again.
func (a *attempt) complete(ctx context.Context) error {
	if _, err := a.tx.ExecContext(ctx, "COMMIT"); err != nil && !strings.Contains(err.Error(), "no transaction is active") {
		return fmt.Errorf("%w: %w: %w", hookonce.ErrUnknownOutcome, ended.Committed, err)
	}
	return ended.Committed
}

// markWithSavepoint leaves a mark that is gone when the transaction is.
func markWithSavepoint(ctx context.Context, tx *sql.Tx, number int64) (int64, error) {
	_, err := tx.ExecContext(ctx, "SAVEPOINT hookonce")
	return number, err
}

// unmarkSavepoint looks for the mark.
func unmarkSavepoint(ctx context.Context, tx *sql.Tx, _ int64) (intact bool, err error) {
	_, err = tx.ExecContext(ctx, "RELEASE SAVEPOINT hookonce")
	if err != nil && (mysqlNumber(err) == 1305 || strings.Contains(err.Error(), "no such savepoint")) { // ER_SP_DOES_NOT_EXIST
		return false, nil
	}
	return err == nil, err
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
