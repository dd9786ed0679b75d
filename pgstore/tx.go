package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ended"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx is the transaction as a handler sees it: everything but its end, and for as long as it is the one
// that holds the claim. Begin still starts a savepoint, which the handler does end.
type handlerTx struct {
	pgx.Tx
	work *work
}

var (
	errNotYours = errors.New("pgstore: the transaction holds the claim and ends by itself when the handler " +
		"returns: return nil to commit, an error to roll back")
	errOver = errors.New("pgstore: the transaction was rolled back by a statement of the handler's; what comes after that would be stored without the claim")
)

// Commit refuses.
func (handlerTx) Commit(context.Context) error { return errNotYours }

// Rollback refuses. A deferred Rollback in the handler does no harm.
func (handlerTx) Rollback(context.Context) error { return errNotYours }

// usable returns an error if a statement would not be part of the handler's transaction. After a ROLLBACK it would
// be stored by itself. After a COMMIT it is let through, because nothing would do it again.
func (t handlerTx) usable(ctx context.Context) error {
	if t.work.over.Load() {
		return pgx.ErrTxClosed
	}
	conn := t.Tx.Conn().PgConn()
	if conn.TxStatus() != idle || conn.IsClosed() || conn.IsBusy() {
		return nil
	}
	if committed, err := t.work.committed(ctx); err != nil || !committed {
		return errors.Join(errOver, err)
	}
	return nil
}

// Begin implements [pgx.Tx].
func (t handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	inner, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return savepoint{handlerTx{inner, t.work}}, nil
}

// CopyFrom implements [pgx.Tx].
func (t handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.usable(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// SendBatch implements [pgx.Tx].
func (t handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.SendBatch(ctx, b)
}

// Prepare implements [pgx.Tx].
func (t handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// Exec implements [pgx.Tx].
func (t handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.usable(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements [pgx.Tx].
func (t handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(new(pgx.Batch), err).Query()
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements [pgx.Tx].
func (t handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(new(pgx.Batch), err).QueryRow()
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// savepoint is a part of the handler's transaction that the handler ends.
type savepoint struct{ handlerTx }

// Commit keeps the part.
func (s savepoint) Commit(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.Tx.Commit(ctx)
}

// Rollback undoes the part.
func (s savepoint) Rollback(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.Tx.Rollback(ctx)
}

// The server's words for where a connection stands.
const (
	idle     = 'I' // outside a transaction
	inFailed = 'E' // inside a transaction that can only be rolled back
)

// commit commits the transaction, if it still is the one that holds the claim. An error wraps
// [hookonce.ErrUnknownOutcome] unless it is certain what was committed.
func (w *work) commit(ctx context.Context) error {
	w.over.Store(true)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.committable(ctx); err != nil {
		return err
	}
	var intact, looked, committed bool
	var b pgx.Batch
	b.Queue(intactSQL, w.number).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&intact)
		looked = err == nil
		return err
	})
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	err := w.conn.SendBatch(ctx, &b).Close()
	switch {
	case err == nil && committed:
		w.tx = nil
		if !intact {
			return ended.ErrCommitted
		}
		return nil
	case err == nil:
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	case !looked && pgerror.State(err) == invalidText:
		return ended.ErrSwept
	case pgerror.NotCommitted(err):
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err)
}

// committable returns an error if there is no point in sending COMMIT. Once it is sent, only the
// server's own word tells that nothing was committed: pgx's may not, because it reports a connection
// that breaks while it waits for the answer like one that was closed before, as safe to retry.
func (w *work) committable(ctx context.Context) error {
	conn := w.conn.Conn().PgConn()
	switch {
	case conn.IsClosed():
		return errors.New("the connection was lost before the commit")
	case conn.IsBusy():
		return errors.New("the handler returned nil and left the rows of a query open: close them")
	case conn.TxStatus() == inFailed:
		return ended.ErrHidden
	case conn.TxStatus() == idle:
		committed, err := w.committed(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%w: the handler ended the transaction with a statement of its own: leave that to the store: %w", hookonce.ErrUnknownOutcome, err)
		case committed:
			return ended.ErrCommitted
		}
		return ended.ErrSwept
	}
	return nil
}

// committed reports whether the transaction, which is over, was committed.
func (w *work) committed(ctx context.Context) (bool, error) {
	var status string
	err := w.conn.QueryRow(ctx, statusSQL, w.number).Scan(&status)
	if err == nil && status != "committed" && status != "aborted" {
		err = fmt.Errorf("the server says that it is %s", status)
	}
	return status == "committed", err
}
