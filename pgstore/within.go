package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/jackc/pgx/v5"
)

// Within implements [hookonce.TxStore]. The transaction has the database's default isolation level,
// and lock_timeout is the caller's own while fn runs. When the commit's outcome is unknown a trace is
// left as well, unless it finds the work done. A fn that goes on for 5 s after ctx has ended loses its connection: the
// server rolls back, and the key is free, also if fn never returns.
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(tx pgx.Tx, c hookonce.Claim) error) (hookonce.Claim, error) {
	w, c, err := s.begin(ctx, req)
	if err != nil || w == nil {
		return c, err
	}
	if err := s.attempt(ctx, w, c, fn); err != nil {
		return c, fmt.Errorf("pgstore: %s: attempt %d: %w", c.Ref, c.Token, err)
	}
	return c, nil
}

// begin starts the transaction and claims. The work is nil when there is none to do.
func (s *Store) begin(ctx context.Context, req hookonce.ClaimRequest) (*work, hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return nil, hookonce.Claim{}, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, hookonce.Claim{}, wrap("claim", req.Ref, s.watch.Explain(ctx, s.size, s.waits, err))
	}
	w := &work{conn: conn}
	c := hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}
	if req.Key != "" {
		c, err = s.beginClaimed(ctx, w, req)
	} else if err = w.begin(ctx, func(b *pgx.Batch) { b.Queue(claimsql.Number).QueryRow(w.numbered) }); err != nil {
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
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1, Type: claimsql.Storable(req.Type),
		Digest: known(req.Digest), FirstSeen: now, UpdatedAt: now,
	}
	var inserted bool
	err := w.begin(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.Fresh, c.Source, c.Key, c.Type, c.Digest, now).QueryRow(func(row pgx.Row) error {
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
		b.Queue(s.sql.Claim, q.args...).QueryRow(func(row pgx.Row) (err error) {
			c, w.number, err = q.number(row)
			return err
		})
	})
	switch {
	case err != nil || c.Verdict == hookonce.Acquired:
		return c, err
	case c.Verdict == hookonce.Duplicate: // the commit waits for a standby, if commits do
		err = inTime(ctx, w.tx.Commit(ctx))
	default:
		rollback(ctx, w.tx)
	}
	w.tx = nil
	return c, err
}

// endAndLook ends the transaction, which has written nothing, and returns the stored claim with the
// verdict about it, all in one round trip.
func (s *Store) endAndLook(ctx context.Context, w *work, req hookonce.ClaimRequest, now time.Time) (c hookonce.Claim, err error) {
	w.tx = nil
	var b pgx.Batch
	b.Queue("rollback")
	b.Queue(s.sql.Find, req.Source, req.Key).Query(func(rows pgx.Rows) error {
		var r record
		if !rows.Next() {
			return nil // being made, or purged since: raced
		}
		if err := rows.Scan(r.fields()...); err != nil {
			return err
		}
		c = r.claim(req.Ref)
		c.Verdict, c.Conflict = verdict(c, req, now), req.Conflicts(c.Digest)
		return nil
	})
	return c, inTime(ctx, w.conn.SendBatch(ctx, &b).Close())
}

// attempt runs fn and commits, or rolls back and leaves a trace.
func (s *Store) attempt(ctx context.Context, w *work, c hookonce.Claim, fn func(pgx.Tx, hookonce.Claim) error) (err error) {
	s.watch.Enter(s.size, s.waits)
	err = errors.New("the handler ended its goroutine")
	release := w.leash(ctx, s.patience)
	defer func() {
		p := recover()
		release()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		s.watch.Leave(s.size)
		w.end(ctx)
		if err != nil {
			err = s.trace(ctx, c, err, w.torn())
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(handlerTx{w.tx, w, &w.hidden}, c); err == nil {
		release()
		err = w.commit(ctx)
	}
	return s.watch.Explain(ctx, s.size, s.waits, err)
}

// trace records that an attempt failed with cause, and returns cause. A permanent or pinned failure that has to
// give way to another attempt is not on record: then the error wraps [hookonce.ErrTraceLost] as well. Of the attempt of
// the transaction torn the claim is opened again if that was committed, which the error says; nil: of none.
func (s *Store) trace(ctx context.Context, c hookonce.Claim, cause error, torn *int64) error {
	f := hookonce.FailureOf(ctx, c.Ref, cause)
	if c.Key == "" {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	lost := func(err error) error { return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, explain(err)) }
	if f.Forgets(c.Token) {
		stands, err := s.stands(ctx, torn)
		switch {
		case err != nil:
			return lost(err)
		case !stands:
			return cause
		}
	}
	var pinned int64
	if f.Pin {
		pinned = c.Token
	}
	opening := fmt.Errorf("%w: %w", claimsql.ErrTorn, cause)
	var recorded, opened bool
	leave := func() error {
		return s.urgent(ctx, soon, func(on asker) error {
			err := on.QueryRow(ctx, s.sql.Trace, c.Source, c.Key, string(f.State()), c.Token, c.Type, c.Digest,
				s.now(), f.Text(), (*string)(until(time.Now().Add(s.wait))), c.FirstSeen, pinned, c.UpdatedAt, torn,
				hookonce.Failure{Err: opening}.Text()).Scan(&opened)
			recorded = err == nil
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
	}
	err := s.again(ctx, leave)
	stands := false
	if err != nil || !recorded {
		stands, _ = s.stands(ctx, torn)
	}
	if err != nil && stands { // without a trace the work would be lost
		err = s.again(ctx, leave)
	}
	switch {
	case err != nil || recorded:
	case stands:
		err = claimsql.ErrStays
	case f.Dead || f.Pin:
		err = errGaveWay
	}
	if opened {
		cause = opening
	}
	if err != nil {
		return lost(err)
	}
	return cause
}

// stands reports whether the handler committed the transaction.
func (s *Store) stands(ctx context.Context, number *int64) (stands bool, err error) {
	if number == nil {
		return false, nil
	}
	err = s.urgent(ctx, soon, func(on asker) (err error) {
		stands, err = committed(ctx, on, *number)
		return err
	})
	return stands, err
}

var errGaveWay = errors.New("the key belongs to another attempt by now")
