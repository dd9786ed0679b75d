package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// work is a transaction that holds a claim, with its connection.
type work struct {
	conn   *pgxpool.Conn
	tx     pgx.Tx
	number int64       // of the transaction, by which it is known
	over   atomic.Bool // the handler's part is over
}

// end rolls back unless the transaction was committed, and returns the connection to the pool.
func (w *work) end(ctx context.Context) {
	w.over.Store(true)
	if w.tx != nil {
		rollback(ctx, w.tx)
	}
	w.conn.Release()
}

// leash cuts the connection when ctx has ended and a handler has not heeded that for as long as patience, unless
// release was called before. Whatever the handler does then, it no longer holds the key, and could not have committed.
func (w *work) leash(ctx context.Context, patience time.Duration) (release func()) {
	conn := w.conn.Conn().PgConn().Conn()
	var first sync.Once // of the two, or the connection of another's work might be cut
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(patience, func() { first.Do(func() { conn.Close() }) })
	})
	return func() {
		stop()
		first.Do(func() {})
	}
}

// rollback ends tx unless it has ended. If it fails the connection is closed, and the server rolls
// back by itself.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// begin starts the transaction and claims. The work is nil when there is none to do.
func (s *Store) begin(ctx context.Context, req hookonce.ClaimRequest) (*work, hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return nil, hookonce.Claim{}, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, hookonce.Claim{}, wrap("claim", req.Ref, s.crowd.Explain(ctx, s.size, s.waits, err))
	}
	w := &work{conn: conn}
	c := hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}
	if req.Key != "" {
		c, err = s.beginClaimed(ctx, w, req)
	} else if err = w.begin(ctx, func(b *pgx.Batch) { b.Queue(numberSQL).QueryRow(w.numbered) }); err != nil {
		err = fmt.Errorf("pgstore: begin: %w", err)
	}
	if err == nil && w.tx != nil {
		return w, c, nil
	}
	conn.Release()
	if err == nil {
		err = wrap("claim", req.Ref, c.Verdict.Err())
	}
	return nil, c, err
}

// beginClaimed sets w.tx if it won. It first takes the key for one that was never seen.
func (s *Store) beginClaimed(ctx context.Context, w *work, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	fresh := true
	return s.contend(req.Ref, func(limit lockTimeout) (hookonce.Claim, error) {
		if fresh {
			fresh = false
			return s.beginFresh(ctx, w, req)
		}
		return s.beginAny(ctx, w, req, limit)
	})
}

// beginFresh sends BEGIN and the claim of a fresh key in one round trip, which waits for nobody. The
// verdict about a key that is not fresh is read in a second one, outside the transaction; it is raced
// when the claim can be taken over, or is not there yet.
func (s *Store) beginFresh(ctx context.Context, w *work, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	now := s.now()
	c := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1, Type: storable(req.Type),
		Digest: known(req.Digest), FirstSeen: now, UpdatedAt: now,
	}
	var inserted bool
	err := w.begin(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.fresh, c.Source, c.Key, c.Type, c.Digest, now).QueryRow(func(row pgx.Row) error {
			err := w.numbered(row)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			inserted = err == nil
			return err
		})
	})
	if err != nil || inserted {
		return c, err
	}
	return s.endAndLook(ctx, w, req, now)
}

// beginAny sends BEGIN and the claim of a key in whatever state in one round trip.
func (s *Store) beginAny(ctx context.Context, w *work, req hookonce.ClaimRequest, limit lockTimeout) (c hookonce.Claim, err error) {
	q := s.claimQuery(req, hookonce.StateDone, limit)
	err = w.begin(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.claim, q.args...).QueryRow(func(row pgx.Row) (err error) {
			c, w.number, err = q.number(row)
			return err
		})
	})
	if err == nil && c.Verdict != hookonce.Acquired {
		rollback(ctx, w.tx)
		w.tx = nil
	}
	return c, err
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

// endAndLook ends the transaction, which has written nothing, and returns the stored claim with the
// verdict about it, all in one round trip.
func (s *Store) endAndLook(ctx context.Context, w *work, req hookonce.ClaimRequest, now time.Time) (c hookonce.Claim, err error) {
	w.tx = nil
	var b pgx.Batch
	b.Queue("rollback")
	b.Queue(s.sql.lookup, req.Source, req.Key).Query(func(rows pgx.Rows) error {
		var r record
		if !rows.Next() {
			return nil // being made, or purged since: raced
		}
		if err := rows.Scan(r.fields()...); err != nil {
			return err
		}
		c = r.claim(req.Ref)
		c.Verdict, c.Conflict = verdict(c, req, now), differ(c.Digest, req.Digest)
		return nil
	})
	return c, w.conn.SendBatch(ctx, &b).Close()
}
