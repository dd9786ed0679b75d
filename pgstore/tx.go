package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// handlerTx is the transaction as a handler sees it: everything but its end. Begin still starts a
// savepoint, which the handler does end.
type handlerTx struct{ pgx.Tx }

var errNotYours = errors.New("pgstore: the transaction holds the claim and ends by itself when the handler " +
	"returns: return nil to commit, an error to roll back")

// Commit refuses.
func (handlerTx) Commit(context.Context) error { return errNotYours }

// Rollback refuses. A deferred Rollback in the handler does no harm.
func (handlerTx) Rollback(context.Context) error { return errNotYours }

// idle is the server's word for a connection outside a transaction.
const idle = 'I'

// commit commits tx. An error wraps [hookonce.ErrUnknownOutcome] unless it is certain that nothing
// was committed.
func commit(ctx context.Context, tx pgx.Tx) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if conn := tx.Conn().PgConn(); !conn.IsClosed() && conn.TxStatus() == idle {
		return errors.New("the handler ended the transaction with a statement of its own")
	}
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("the handler returned nil although one of its statements had failed: %w", err)
	case isDefinite(err):
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err)
}
