package pgstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
)

// Claim implements [hookonce.Store].
func (s *Store) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	return s.contend(req.Ref, func(limit lockTimeout) (hookonce.Claim, error) {
		q := s.claimQuery(req, hookonce.StateProcessing, limit)
		c, err := q.scan(s.pool.QueryRow(ctx, s.sql.Claim, q.args...))
		return c, inTime(ctx, err)
	})
}

// ClaimTx implements [hookonce.TxStore]. It waits for another transaction as long as the caller's
// lock_timeout lets it.
//
// Each claim that is won holds an advisory lock until the transaction ends. The server has room for
// max_locks_per_transaction times max_connections locks of all its transactions together, 6400 by
// default (Postgres 15 was measured to stop at twice that, with nothing else running), and fails with
// SQLSTATE 53200 beyond. Claim large batches in several transactions, or raise that setting.
//
// Where commits wait for a standby (synchronous_standby_names), a claim that finds work done writes an empty
// message into the log, so that COMMIT waits until the standby has that work: commit for [hookonce.Duplicate] as well,
// before anybody is told of it. A rollback waits for nothing. A pool that has the server cancel what a context that ends waits
// for ([pgconn.CancelRequestContextWatcherHandler]) is told that a commit succeeded which has not waited: look at the context
// after it.
func (s *Store) ClaimTx(ctx context.Context, tx pgx.Tx, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	q := s.claimQuery(req, hookonce.StateDone, nil)
	for range maxTries {
		c, err := q.scan(tx.QueryRow(ctx, s.sql.Claim, q.args...))
		if err != nil {
			return hookonce.Claim{}, wrap("claim", req.Ref, err)
		}
		if c.Verdict != raced {
			return c, wrap("claim", req.Ref, c.Verdict.Err())
		}
	}
	return busy(req.Ref), wrap("claim", req.Ref, hookonce.ErrBusy)
}

// raced is the verdict of a claim that lost to somebody who is not visible in its snapshot. It does
// not leave this package.
const raced hookonce.Verdict = 0

func busy(ref hookonce.Ref) hookonce.Claim { return hookonce.Claim{Ref: ref, Verdict: hookonce.Busy} }

// contend runs try, which claims in a transaction of its own, until it has a verdict. It waits for
// other transactions no longer than the store's bounded wait, all tries together.
func (s *Store) contend(ref hookonce.Ref, try func(lockTimeout) (hookonce.Claim, error)) (hookonce.Claim, error) {
	end := time.Now().Add(s.wait)
	for range maxTries {
		c, err := try(until(end))
		switch {
		case pgerror.LockTimeout(err):
			return busy(ref), nil
		case pgerror.LostRace(err):
		case err != nil:
			return hookonce.Claim{}, wrap("claim", ref, err)
		case c.Verdict != raced:
			return c, nil
		}
	}
	return busy(ref), nil
}

// lockTimeout is a value for PostgreSQL's setting of that name; nil leaves the setting alone.
type lockTimeout *string

// until returns the time that is left until end, and at least a millisecond: zero would mean forever.
func until(end time.Time) lockTimeout {
	text := strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10) + "ms"
	return &text
}

// claimQuery is one claiming statement: what goes in, and how to read what comes out.
type claimQuery struct {
	req  hookonce.ClaimRequest
	now  time.Time
	args []any
}

func (s *Store) claimQuery(req hookonce.ClaimRequest, won hookonce.State, limit lockTimeout) claimQuery {
	now := s.now()
	var lease *time.Time
	if won == hookonce.StateProcessing {
		lease = deadline(now, req.Lease)
	}
	return claimQuery{req, now, []any{
		req.Source, req.Key, string(won), lease, claimsql.Storable(req.Type), known(req.Digest), now, (*string)(limit),
		req.Pin && won == hookonce.StateProcessing,
	}}
}

func (q claimQuery) scan(row pgx.Row) (hookonce.Claim, error) {
	c, _, err := q.number(row)
	return c, err
}

// number also returns the number of the transaction that won.
func (q claimQuery) number(row pgx.Row) (hookonce.Claim, int64, error) {
	var (
		number int64
		r      record
		before []byte // the digest that was stored
		won    bool
	)
	if err := row.Scan(append(append([]any{nil, &won, &before}, r.fields()...), &number)...); err != nil {
		return hookonce.Claim{}, 0, err
	}
	c := r.claim(q.req.Ref)
	c.Conflict = q.req.Conflicts(before)
	c.Verdict = hookonce.Acquired
	if !won {
		c.Verdict = verdict(c, q.req, q.now)
	}
	return c, number, nil
}

// verdict is what a request that did not win is told about the stored claim. The verdict is raced
// when the claim could be had after all.
func verdict(c hookonce.Claim, req hookonce.ClaimRequest, now time.Time) hookonce.Verdict {
	if v := c.VerdictFor(req, now); v != hookonce.Acquired {
		return v
	}
	return raced
}

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c, err := s.find(ctx, s.pool, s.sql.Lookup, ref)
	return c, wrap("look up", ref, err)
}

// find reads the claim with one of two texts, on a connection of the caller's choice.
func (s *Store) find(ctx context.Context, on asker, text string, ref hookonce.Ref) (hookonce.Claim, error) {
	var r record
	err := inTime(ctx, on.QueryRow(ctx, text, ref.Source, ref.Key).Scan(r.fields()...))
	if errors.Is(err, pgx.ErrNoRows) {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Claim{}, err
	}
	return r.claim(ref), nil
}

// record is a row of the table as a statement returns it.
type record struct {
	state, eventType, lastError string
	token, pinned               int64
	lease                       *time.Time
	digest                      []byte
	firstSeen, updatedAt        time.Time
}

// fields are the places to scan [claimsql.Columns] into.
func (r *record) fields() []any {
	return []any{&r.state, &r.token, &r.lease, &r.eventType, &r.digest, &r.firstSeen, &r.updatedAt, &r.lastError, &r.pinned}
}

func (r *record) claim(ref hookonce.Ref) hookonce.Claim {
	c := hookonce.Claim{
		Ref: ref, State: hookonce.State(r.state), Token: r.token, Type: r.eventType, Digest: r.digest,
		FirstSeen: r.firstSeen.UTC(), UpdatedAt: r.updatedAt.UTC(), LastError: r.lastError,
		Pinned: r.pinned,
	}
	if r.lease != nil {
		c.Lease = r.lease.UTC()
	}
	return c
}

// deadline returns when a lease of d that begins now ends; nil: never.
func deadline(now time.Time, d time.Duration) *time.Time {
	if d == 0 {
		return nil
	}
	t := instant(now.Add(d))
	return &t
}

// known returns nil for an empty digest, which the table keeps as null.
func known(digest []byte) []byte {
	if len(digest) == 0 {
		return nil
	}
	return digest
}
