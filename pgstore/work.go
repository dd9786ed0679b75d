package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// work is a transaction that holds a claim, with its connection.
type work struct {
	conn    *pgxpool.Conn
	tx      pgx.Tx
	number  int64       // of the transaction, by which it is known
	over    atomic.Bool // the handler's part is over
	refused atomic.Bool // a batch was not sent, so what the handler meant to do is not there
	// commits says that the handler called Commit, and rolledBack that it called Rollback, and not Commit before.
	commits, rolledBack atomic.Bool
	// hidden is the first error of a statement that did not come to the server.
	hidden atomic.Pointer[error]
	// whole says that what is stored of the work, if anything, is all of it. Otherwise the handler may have committed the
	// claim without what came after that.
	whole bool
}

// numbered reads the transaction's number.
func (w *work) numbered(row pgx.Row) error { return row.Scan(&w.number) }

// begin starts the transaction with what queue adds to BEGIN. After an error there is none.
func (w *work) begin(ctx context.Context, queue func(*pgx.Batch)) error {
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	queue(&b)
	results := w.conn.SendBatch(ctx, &b)
	if err := results.Close(); err != nil {
		rollback(ctx, results.Tx())
		return err
	}
	w.tx = results.Tx()
	return nil
}

// leash ends the session when ctx has ended and a handler has not heeded that for as long as patience, unless
// release was called before. Whatever the handler does then, it no longer holds the key, and could not have committed.
func (w *work) leash(ctx context.Context, patience time.Duration) (release func()) {
	conn := w.conn.Conn().PgConn()
	var first sync.Once // of the two, and release waits for the end, or another's work might be cut
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, func() { first.Do(func() { cut(conn) }) }) })
	return func() {
		stop()
		first.Do(func() {})
	}
}

// cut closes a connection that somebody uses. A server that is at work on a statement, or waits for a lock, does not look
// whether its client is there, so it is told to stop that first. pgx would tell it as well, if somebody reads the answer, but
// when the connection is closed, and a pooler does not know any more whose statement it was.
func cut(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	_ = conn.CancelRequest(ctx)
	conn.Conn().Close()
}

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
	b.Queue(claimsql.Intact, w.number).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&intact)
		looked = err == nil
		return err
	})
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	err := w.conn.SendBatch(ctx, &b).Close()
	w.whole = intact
	if err == nil && committed && ctx.Err() != nil { // see inTime
		w.tx = nil
		return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, ctx.Err())
	}
	switch {
	case err == nil && committed:
		w.tx, w.whole = nil, true
		if !intact {
			return claimsql.ErrCommitted
		}
		return nil
	case err == nil:
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	case !looked && pgerror.InvalidText(err):
		return claimsql.ErrSwept
	case pgerror.NotCommitted(err):
		return fmt.Errorf("commit: %w", err)
	}
	w.whole = intact || !looked
	return fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err)
}

// inTime returns the error of what was done under ctx, or else, also of a query that found nothing, that of ctx. A pool may have
// the server cancel what a context that ends was waiting for ([pgconn.CancelRequestContextWatcherHandler]): a commit that waits
// for a standby then takes effect on the primary alone, and is told to have succeeded.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil && (err == nil || errors.Is(err, pgx.ErrNoRows)) {
		return ctx.Err()
	}
	return err
}

// committable returns an error if there is no point in sending COMMIT. Once it is sent, only the
// server's own word tells that nothing was committed: pgx's may not, because it reports a connection
// that breaks while it waits for the answer like one that was closed before, as safe to retry.
func (w *work) committable(ctx context.Context) error {
	conn := w.conn.Conn().PgConn()
	switch {
	case w.refused.Load():
		return claimsql.ErrRefused
	case w.rolledBack.Load():
		return claimsql.ErrRolledBack
	case conn.IsClosed():
		return errors.New("the connection was lost before the commit")
	case w.hidden.Load() != nil:
		return fmt.Errorf("%w: %w", claimsql.ErrHidden, *w.hidden.Load())
	case conn.IsBusy():
		return errors.New("the handler returned nil and left the rows of a query open: close them")
	case conn.TxStatus() == inFailed:
		return claimsql.ErrHidden
	case conn.TxStatus() == idle:
		committed, err := w.committed(ctx)
		w.whole = true // each statement after the end was a transaction of its own
		switch {
		case err != nil:
			return fmt.Errorf("%w: the handler ended the transaction with a statement of its own: leave that to the store: %w", hookonce.ErrUnknownOutcome, err)
		case committed:
			return claimsql.ErrCommitted
		}
		return claimsql.ErrSwept
	}
	return nil
}

// committed reports whether the transaction, which is over, was committed.
func (w *work) committed(ctx context.Context) (bool, error) { return committed(ctx, w.conn, w.number) }

// committed reports whether the transaction with the number, which is over, was committed.
func committed(ctx context.Context, on asker, number int64) (bool, error) {
	var status string
	if err := on.QueryRow(ctx, claimsql.Status, number).Scan(&status); err != nil {
		return false, err
	}
	return claimsql.Committed(status)
}

// torn returns the number of the transaction, unless what is stored of the work is all of it.
func (w *work) torn() *int64 {
	if w.whole {
		return nil
	}
	return &w.number
}

// end rolls back unless the transaction was committed, and returns the connection to the pool.
func (w *work) end(ctx context.Context) {
	w.over.Store(true)
	if w.tx != nil {
		rollback(ctx, w.tx)
	}
	w.conn.Release()
}

// rollback ends tx unless it has ended. If it fails the connection is closed, and the server rolls
// back by itself.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// The server's words for where a connection stands.
const (
	idle     = 'I' // outside a transaction
	inFailed = 'E' // inside a transaction that can only be rolled back
)
