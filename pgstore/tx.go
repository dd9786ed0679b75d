package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx is the transaction as a handler sees it: everything but its end, and for as long as it is the one
// that holds the claim. Begin still starts a savepoint, which the handler does end.
type handlerTx struct {
	pgx.Tx
	work *work
	// hidden is the first error of a statement that did not come to the server, in this part of the transaction.
	hidden *atomic.Pointer[error]
}

var (
	errNotYours = errors.New("pgstore: the transaction holds the claim and ends by itself when the handler " +
		"returns: return nil to commit, an error to roll back")
	errBusy = errors.New("the rows of another query were open, or another goroutine used the connection")
	errOver = errors.New("pgstore: the transaction was rolled back by a statement of the handler's; what comes after that would be stored without the claim")
)

// Commit refuses: that is done when the handler returns nil.
func (t handlerTx) Commit(context.Context) error {
	t.work.commits.Store(true)
	return errNotYours
}

// Rollback refuses. A handler that calls it, deferred or not, and returns nil has failed, because in a transaction of its own that
// would undo its work. After Commit it means nothing, as in pgx.
func (t handlerTx) Rollback(context.Context) error {
	if !t.work.commits.Load() {
		t.work.rolledBack.Store(true)
	}
	return errNotYours
}

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

// noted remembers an error of which the server knows nothing, such as that of a statement that could not be sent, because the rows
// of another one were open: the work would be committed without what was refused. What failed in a savepoint may be undone with it.
func (t handlerTx) noted(err error) error {
	var known *pgconn.PgError
	if err != nil && !errors.As(err, &known) {
		t.hidden.CompareAndSwap(nil, &err)
	}
	return err
}

// free reports whether nothing is under way on the connection. Right after a query it says that the query was not sent,
// because an argument is missing, say: pgx tells only whoever asks for its results, and a handler may not.
func (t handlerTx) free() bool { return !t.Tx.Conn().PgConn().IsBusy() }

// Begin implements [pgx.Tx].
func (t handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	inner, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, t.noted(err)
	}
	return savepoint{handlerTx{inner, t.work, new(atomic.Pointer[error])}, t}, nil
}

// CopyFrom implements [pgx.Tx].
func (t handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.usable(ctx); err != nil {
		return 0, err
	}
	n, err := t.Tx.CopyFrom(ctx, table, columns, rows)
	return n, t.noted(err)
}

// SendBatch implements [pgx.Tx]. Several statements go only if each is known to leave the transaction open. Once a batch was
// refused nothing is committed, also if the handler hides the error: the server knows of none.
func (t handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	for i, q := range b.QueuedQueries {
		if len(b.QueuedQueries) > 1 && !staysInside(q.SQL, q.Arguments) { // what follows in the same message would be stored by itself
			t.work.refused.Store(true)
			return pgx.FailedBatchResults(b, fmt.Errorf("%w; statement %d of the batch may end it: send that by itself", errNotYours, i+1))
		}
	}
	if !t.free() {
		_ = t.noted(errBusy)
	}
	results := t.Tx.SendBatch(ctx, b)
	if t.free() {
		_ = t.noted(results.Close())
	}
	return results
}

// Prepare implements [pgx.Tx].
func (t handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	statement, err := t.Tx.Prepare(ctx, name, sql)
	return statement, t.noted(err)
}

// Exec implements [pgx.Tx].
func (t handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.usable(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.Tx.Exec(ctx, sql, args...)
	return tag, t.noted(err)
}

// Query implements [pgx.Tx].
func (t handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(new(pgx.Batch), err).Query()
	}
	rows, err := t.Tx.Query(ctx, sql, args...)
	if err == nil && t.free() {
		rows.Close()
		_ = t.noted(rows.Err())
	}
	return rows, t.noted(err)
}

// QueryRow implements [pgx.Tx].
func (t handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.usable(ctx); err != nil {
		return pgx.FailedBatchResults(new(pgx.Batch), err).QueryRow()
	}
	if !t.free() {
		_ = t.noted(errBusy)
	}
	row := t.Tx.QueryRow(ctx, sql, args...)
	if t.free() {
		if err := row.Scan(); !errors.Is(err, pgx.ErrNoRows) {
			_ = t.noted(err)
		}
	}
	return row
}

// savepoint is a part of the handler's transaction that the handler ends.
type savepoint struct {
	handlerTx
	of handlerTx // what it is a part of
}

// Commit keeps the part, and with it what failed there and did not come to the server.
func (s savepoint) Commit(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := s.ended(s.Tx.Commit(ctx))
	if hidden := s.hidden.Load(); err == nil && hidden != nil {
		_ = s.of.noted(*hidden)
	}
	return err
}

// Rollback undoes the part.
func (s savepoint) Rollback(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.ended(s.Tx.Rollback(ctx))
}

// ended notes an end that did not come to the server, such as one whose context had ended: what the handler takes for undone, or
// for refused, would be committed, and pgx.BeginFunc tells nobody.
func (s savepoint) ended(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return s.of.noted(err)
}

// staysInside reports whether a statement, sent inside a transaction, certainly leaves it open. Of a prepared statement's name
// that is not certain, nor of several statements in one text, nor where a comment may hide a word.
func staysInside(query string, arguments []any) bool {
	if rewritten(arguments) {
		return false
	}
	if queryOrChange(query) {
		return true
	}
	rest, ok := skipComments(query)
	rest = strings.TrimRight(rest, "; \t\r\n")
	if !ok || strings.Contains(rest, ";") || strings.Contains(rest, "--") || strings.Contains(rest, "/*") {
		return false
	}
	words := strings.Fields(strings.ToLower(rest))
	if len(words) < 2 {
		return false
	}
	switch words[0] {
	case "alter", "analyze", "call", "close", "comment", "copy", "create", "declare", "do", "drop", "explain", "fetch", "grant", "listen",
		"lock", "move", "notify", "refresh", "release", "reset", "revoke", "savepoint", "set", "truncate", "unlisten":
		return true
	case "rollback":
		return words[1] == "to" || len(words) > 2 && (words[1] == "work" || words[1] == "transaction") && words[2] == "to"
	}
	return false
}
