package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// Claim implements [hookonce.Store]. When another transaction holds the key it waits, at most the
// store's bounded wait, and then answers Busy.
func (s *Store) Claim(ctx context.Context, req hookonce.ClaimRequest) (c hookonce.Claim, err error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return unkeyed(req), nil
	}
	if c, settled, err := s.peek(ctx, req); settled || err != nil {
		return c, err
	}
	err = s.insist(ctx, func() (err error) {
		c, err = s.claimAlone(ctx, req)
		return err
	})
	return s.patient(ctx, req, c, err)
}

// claimAlone is one try to claim in no transaction of the caller's.
func (s *Store) claimAlone(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	on, err := s.bounded(ctx)
	if err != nil {
		return hookonce.Claim{}, err
	}
	defer on.end()
	r, err := s.claim(ctx, on, s.leased(req))
	return r.claim, s.broke(err)
}

// ClaimTx implements [hookonce.TxStore]. On SQLite make it the first statement of tx: after a
// reading statement it can fail because others wrote meanwhile.
//
// On Postgres each claim that is won holds an advisory lock until the transaction ends. The server has
// room for max_locks_per_transaction times max_connections locks of all its transactions together,
// 6400 by default (Postgres 15 was measured to stop at twice that, with nothing else running), and
// fails with SQLSTATE 53200 beyond. Claim large batches in several transactions, or raise that setting.
//
// Where commits of Postgres wait for a standby (synchronous_standby_names), a claim that finds work done writes an empty
// message into the log, so that COMMIT waits until the standby has that work: commit for [hookonce.Duplicate] as well,
// before anybody is told of it. A rollback waits for nothing. When a context ends, lib/pq has the server cancel what it waits
// for, and is told that a commit succeeded which has not waited: look at the context after it.
//
// On MySQL it waits as long as innodb_lock_wait_timeout says, 50 seconds by default, and it may be the
// victim of a deadlock (error 1213) where claims are made and rolled back at the same time: run the
// transaction again.
func (s *Store) ClaimTx(ctx context.Context, tx *sql.Tx, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return unkeyed(req), nil
	}
	p := s.atomic(req)
	p.wait = nil
	r, err := s.claim(ctx, tx, p)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("sqlstore: claim %s: %w", req.Ref, s.explain(ctx, tx, err))
	}
	return r.claim, told(r.claim)
}

// told returns the error that c is answered with inside a transaction.
func told(c hookonce.Claim) error {
	if err := c.Verdict.Err(); err != nil {
		return fmt.Errorf("sqlstore: claim %s: %w", c.Ref, err)
	}
	return nil
}

func unkeyed(req hookonce.ClaimRequest) hookonce.Claim {
	return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}
}

// leased proposes a row that is held under a lease.
func (s *Store) leased(req hookonce.ClaimRequest) proposal {
	p := proposal{ClaimRequest: req, state: hookonce.StateProcessing, now: s.now(), wait: &s.wait}
	if req.Lease != 0 {
		p.lease = p.now.Add(req.Lease).Truncate(time.Microsecond)
	}
	return p
}

// atomic proposes a row that is done when its transaction commits.
func (s *Store) atomic(req hookonce.ClaimRequest) proposal {
	req.Pin = false
	return proposal{ClaimRequest: req, state: hookonce.StateDone, now: s.now(), wait: &s.wait}
}

// claim asks the database who owns the key. The claim has the verdict.
func (s *Store) claim(ctx context.Context, q querier, p proposal) (ruling, error) {
	r, err := s.dialect.decide(s.dialect, ctx, q, p)
	if err != nil {
		return ruling{}, err
	}
	r.claim = r.answer(p.ClaimRequest, p.now)
	return r, nil
}

// answer is what the request is told, which was decided for the time now.
func (r ruling) answer(req hookonce.ClaimRequest, now time.Time) hookonce.Claim {
	c := r.claim
	c.Verdict = hookonce.Acquired
	if !r.won {
		c.Verdict = c.VerdictFor(req, now)
	}
	if anew := r.won && c.Token == 1; anew {
		r.before = nil // of a row that was purged since it was read
	}
	c.Conflict = req.Conflicts(r.before)
	return c
}

// peek answers from a plain read where that settles the matter: done work stays done, and whoever
// holds a lease held it at the moment of asking. It never lets anybody win.
func (s *Store) peek(ctx context.Context, req hookonce.ClaimRequest) (c hookonce.Claim, settled bool, err error) {
	if !s.dialect.peeks {
		return hookonce.Claim{}, false, nil
	}
	c.Ref = req.Ref
	found, err := s.read(ctx, &c)
	if err != nil {
		return hookonce.Claim{}, false, fmt.Errorf("sqlstore: claim %s: %w", req.Ref, s.explain(ctx, s.db, err))
	}
	now := s.now()
	if !found || c.VerdictFor(req, now) == hookonce.Acquired {
		return hookonce.Claim{}, false, nil
	}
	return ruling{claim: c, before: c.Digest}.answer(req, now), true, nil
}

// patient turns the end of the bounded wait into the verdict Busy.
func (s *Store) patient(ctx context.Context, req hookonce.ClaimRequest, c hookonce.Claim, err error) (hookonce.Claim, error) {
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() == nil && s.busy(err):
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Busy}, nil
	}
	return hookonce.Claim{}, fmt.Errorf("sqlstore: claim %s: %w", req.Ref, s.watch.Explain(ctx, s.size(), s.waits, s.explain(ctx, s.db, err)))
}

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c := hookonce.Claim{Ref: ref}
	found, err := s.read(ctx, &c)
	if err == nil && !found {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("sqlstore: look up %s: %w", ref, s.explain(ctx, s.db, err))
	}
	return c, nil
}

// read fills in the claim that is stored under c's reference, and reports whether there is one.
func (s *Store) read(ctx context.Context, c *hookonce.Claim) (found bool, err error) {
	err = s.insist(ctx, func() (err error) {
		found, err = one(ctx, s.db, s.dialect.lookup, []any{c.Source, c.Key}, fields(c)...)
		return err
	})
	return found, err
}
