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

// The server's words for where a connection stands.
const (
	idle     = 'I' // outside a transaction
	inFailed = 'E' // inside a transaction that can only be rolled back
)

// commit commits tx. An error wraps [hookonce.ErrUnknownOutcome] unless it is certain that nothing
// was committed.
func commit(ctx context.Context, tx pgx.Tx) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := committable(tx); err != nil {
		return err
	}
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case isRefusal(err), errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err)
}

// committable returns an error if there is no point in sending COMMIT. Once it is sent, only the
// server's own word tells that nothing was committed: pgx's may not, because it reports a connection
// that breaks while it waits for the answer like one that was closed before, as safe to retry.
func committable(tx pgx.Tx) error {
	conn := tx.Conn().PgConn()
	switch {
	case conn.IsClosed():
		return errors.New("the connection was lost before the commit")
	case conn.IsBusy():
		return errors.New("the handler returned nil and left the rows of a query open: close them")
	case conn.TxStatus() == idle:
		return errors.New("the handler ended the transaction with a statement of its own: leave that to the store")
	case conn.TxStatus() == inFailed:
		return errors.New("the handler returned nil although one of its statements had failed: return the error")
	}
	return nil
}
