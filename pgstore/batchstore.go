package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// BatchStore is a [Store] whose handlers return statements instead of running them: claim, statements and commit are one
// round trip. It has the claims of the Store that it is made of: both may be used side by side.
type BatchStore struct{ *Store }

var (
	_ hookonce.TxStore[*Batch] = (*BatchStore)(nil)
	_ hookonce.Inspector       = (*BatchStore)(nil)
	_ hookonce.Tallier         = (*BatchStore)(nil)
)

// Batches returns the store for handlers that queue their statements:
//
//	hookonce.Webhook(store.Batches(), "stripe", provider.Stripe(secret), func(ctx context.Context, b *pgstore.Batch, ev *hookonce.Event) error {
//		b.Queue("INSERT INTO payments (event, cents) VALUES ($1, $2)", ev.Key, cents)
//		return nil
//	})
func (s *Store) Batches() *BatchStore { return &BatchStore{s} }

// Within implements [hookonce.TxStore]: the claim, what fn queues, and the commit are sent together, in one round trip. The
// server carries out all of it or nothing.
//
// So fn runs before anything is known of the key, with the claim of an event that was never seen, as nearly every one is. It
// must do nothing but queue statements, because it also runs for copies of finished work, of which nothing is done; and it
// runs once more, with the claim as it is, for an event that failed before. What the statements depend on has to be decided in
// SQL:
//
//	UPDATE accounts SET cents = cents + $2 WHERE id = $1 -- and not: read, add, write
//
// A handler that has to read before it knows what to write belongs in [Store.Within].
//
// A statement that fails rolls everything back, and is a failed attempt with a trace. A statement that changes no row does not
// fail: where that must not be, let SQL say so (1 / count(*), a constraint), or give the [pgx.QueuedQuery] a function, whose
// error rolls back as well. A batch with such functions is sent as [Store.Within] would do it: BEGIN and claim, the statements,
// COMMIT. So are an event that failed before, and one that somebody else is handling, for which it waits as [WithWait] says. So
// is a batch with a statement that is none of INSERT, UPDATE, DELETE, MERGE, SELECT, VALUES and WITH, and then each statement is
// sent by itself, and in [pgx.QueryExecModeSimpleProtocol] it is so with every batch. What is refused is said at [Batch.Queue]. A
// duplicate takes three round trips.
//
// Each duplicate that reaches the server is an ERROR in its log, which says that the event is not new, and pgx prepares the
// statements of the batch again: it can be ended in no other way. [hookonce.Cached] keeps duplicates away.
//
// A client that loses its power, or its network, with half of a batch sent keeps the key until the server notices: as far as
// the server knows a statement is on its way, so neither statement_timeout nor idle_in_transaction_session_timeout ends that. The
// server's tcp_keepalives_idle, tcp_keepalives_interval and tcp_keepalives_count do: set them, because Linux waits two hours.
//
// When the connection is lost before the answer has come the error wraps [hookonce.ErrUnknownOutcome], and the next copy reads
// the truth.
func (s *BatchStore) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(b *Batch, c hookonce.Claim) error) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if ctx.Err() != nil {
		return hookonce.Claim{}, context.Cause(ctx)
	}
	told := s.unseen(req)
	b, c, err := s.ahead(ctx, req, told, fn)
	if err == nil && b != nil {
		c, err = s.send(ctx, req, told, b)
	}
	if !errors.Is(err, errAnother) {
		return c, err
	}
	return s.Store.Within(ctx, req, func(tx pgx.Tx, c hookonce.Claim) error {
		if b == nil || c.Token != told.Token {
			b = lend(c, tx)
			defer b.end() // also if fn panics
			if err := fn(b, c); err != nil {
				return err
			}
			b.end()
		}
		return b.sendIn(ctx, tx.(handlerTx))
	})
}

// ahead runs fn with the claim of an event that was never seen, and returns what it queued. The batch is nil if it failed: then
// the claim and the error are the answer, unless the error wraps errAnother.
func (s *BatchStore) ahead(ctx context.Context, req hookonce.ClaimRequest, told hookonce.Claim, fn func(*Batch, hookonce.Claim) error) (b *Batch, c hookonce.Claim, err error) {
	b = lend(told, s.pool)
	err = errors.New("the handler ended its goroutine")
	returned := false
	defer func() {
		p := recover()
		b.end()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err = cmp.Or(err, context.Cause(ctx)); err == nil {
			return
		}
		cause := err
		b = nil
		if c, err = s.declined(ctx, req, told, cause); errors.Is(err, errAnother) && !returned {
			c, err = s.Store.Within(ctx, req, func(pgx.Tx, hookonce.Claim) error { return cause })
			if err != nil && c.Key == "" {
				c, err = told, untraced(told, cause, err)
			}
		}
		if p != nil && errors.Is(err, cause) {
			panic(p)
		}
	}()
	err = fn(b, told)
	returned = true
	return b, told, err
}

// declined is what comes of an attempt that failed with cause before anything was sent: what holds of the claim, or a trace.
func (s *BatchStore) declined(ctx context.Context, req hookonce.ClaimRequest, told hookonce.Claim, cause error) (hookonce.Claim, error) {
	if req.Key == "" || ctx.Err() != nil {
		return told, s.failed(ctx, told, cause)
	}
	c, err := s.other(ctx, s.pool, req)
	switch {
	case errors.Is(err, hookonce.ErrNotFound):
		return told, s.failed(ctx, told, cause)
	case err != nil && c.Key == "": // nothing was found out
		return told, untraced(told, cause, err)
	}
	return c, err
}

// untraced says that an attempt failed with cause, and that err kept that from being recorded.
func untraced(c hookonce.Claim, cause, err error) error {
	return fmt.Errorf("pgstore: %s: attempt %d: %w (%w: %w)", c.Ref, c.Token, cause, hookonce.ErrTraceLost, err)
}

// unseen returns the claim of an event that was never seen.
func (s *BatchStore) unseen(req hookonce.ClaimRequest) hookonce.Claim {
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}
	}
	now := s.now()
	return hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1, Type: claimsql.Storable(req.Type),
		Digest: known(req.Digest), FirstSeen: now, UpdatedAt: now,
	}
}

// errAnother says that the event may be had, and not in one round trip with what was queued. It does not leave this package.
var errAnother = errors.New("pgstore: the event is not new")

// send makes the claim and the batch, in one round trip. An error that wraps errAnother says that this cannot be.
func (s *BatchStore) send(ctx context.Context, req hookonce.ClaimRequest, told hookonce.Claim, b *Batch) (hookonce.Claim, error) {
	if !b.plain() {
		return told, errAnother
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return hookonce.Claim{}, wrap("claim", req.Ref, s.watch.Explain(ctx, s.size, s.waits, err))
	}
	defer conn.Release()
	if simpleProtocol(conn.Conn()) {
		return told, errAnother
	}
	var all pgx.Batch
	claimed, done := told.Key == "", 0
	if !claimed {
		all.Queue(s.sql.FreshOrFail, told.Source, told.Key, told.Type, told.Digest, told.UpdatedAt).Exec(func(pgconn.CommandTag) error {
			claimed = true
			return nil
		})
	}
	all.QueuedQueries = append(all.QueuedQueries, b.counted(&done)...)
	err = conn.SendBatch(ctx, &all).Close()
	switch late := inTime(ctx, err); {
	case err == nil && late != nil:
		conn.Release()
		return told, s.failed(ctx, told, fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, late))
	case err == nil:
		return told, nil
	case !claimed && says(err, claimsql.NotFresh):
		if conn.Conn().IsClosed() {
			conn.Release()
			return s.other(ctx, s.pool, req)
		}
		return s.other(ctx, conn, req)
	case !claimed && pgerror.NotCommitted(err), unsent(conn.Conn(), err):
		return told, errAnother // which also finds out what was wrong
	}
	conn.Release() // or the trace might wait for it
	if pgerror.NotCommitted(err) {
		return told, s.failed(ctx, told, b.taken(err, done))
	}
	return told, s.failed(ctx, told, fmt.Errorf("commit: %w: %w", hookonce.ErrUnknownOutcome, err))
}

// other returns the verdict about an event that is not new. The error wraps errAnother if its claim may be had, and
// [hookonce.ErrNotFound] as well if there is none to be seen.
func (s *BatchStore) other(ctx context.Context, on asker, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	c, err := s.find(ctx, on, s.sql.Find, req.Ref)
	switch {
	case errors.Is(err, hookonce.ErrNotFound): // being made, or purged since
		return c, fmt.Errorf("%w: %w", errAnother, err)
	case err != nil:
		return hookonce.Claim{}, wrap("claim", req.Ref, err)
	}
	c.Verdict, c.Conflict = verdict(c, req, s.now()), req.Conflicts(c.Digest)
	if c.Verdict == raced {
		return c, errAnother
	}
	return c, wrap("claim", req.Ref, c.Verdict.Err())
}

// failed leaves a trace of the attempt, and returns why it failed.
func (s *BatchStore) failed(ctx context.Context, c hookonce.Claim, cause error) error {
	return fmt.Errorf("pgstore: %s: attempt %d: %w", c.Ref, c.Token, s.trace(ctx, c, cause, nil))
}

// says reports whether the server answered with text.
func says(err error, text string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && pgerror.InvalidText(err) && strings.Contains(answer.Message, text)
}

// unsent reports whether nothing was sent but what prepares statements, as when an argument cannot be encoded: the connection is
// as it was. Where pgx closes it all the same there is no name for the error but its text. Were that wrong, the claim that is
// asked for next would tell.
func unsent(conn *pgx.Conn, err error) bool {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return false
	}
	on := conn.PgConn()
	return strings.HasPrefix(err.Error(), "error preprocessing batch (") || !on.IsClosed() && !on.IsBusy() && on.TxStatus() == idle
}

// ClaimTx implements [hookonce.TxStore]: it reads the claim, in one round trip, and queues the statement that takes it. It waits
// for nobody, but that statement does, as long as [WithWait] says, for a transaction that has the key when the batch is sent. If
// somebody else has taken the key by then, or does not end in time, the batch fails with an error that wraps [hookonce.ErrBusy].
// The key of the event itself, whose claim [BatchStore.Within] makes, is a duplicate.
func (s *BatchStore) ClaimTx(ctx context.Context, b *Batch, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent {
		return hookonce.Claim{}, wrap("claim", req.Ref, pgx.ErrTxClosed)
	}
	for _, c := range b.claims {
		if c.Ref == req.Ref {
			c.Verdict, c.Conflict = hookonce.Duplicate, req.Conflicts(c.Digest)
			return c, nil
		}
	}
	on := b.on
	if on == nil {
		on = s.pool
	}
	stored, err := s.find(ctx, on, s.sql.Find, req.Ref)
	next := s.unseen(req)
	switch {
	case errors.Is(err, hookonce.ErrNotFound):
	case err != nil:
		return hookonce.Claim{}, wrap("look up", req.Ref, err)
	default:
		if next = takeover(stored, req, next.UpdatedAt); next.Verdict != hookonce.Acquired {
			return next, wrap("claim", req.Ref, next.Verdict.Err())
		}
	}
	q := s.claimQuery(req, hookonce.StateDone, until(time.Now().Add(s.wait)))
	b.claimAt = append(b.claimAt, b.queued.Len())
	b.queued.Queue(s.sql.ClaimOrFail, q.args...)
	b.claims = append(b.claims, next)
	return next, nil
}

// takeover returns what becomes of a stored claim that is asked for.
func takeover(stored hookonce.Claim, req hookonce.ClaimRequest, now time.Time) hookonce.Claim {
	c := stored
	c.Verdict, c.Conflict = stored.VerdictFor(req, now), req.Conflicts(stored.Digest)
	if c.Verdict != hookonce.Acquired {
		return c
	}
	c.State, c.Token, c.Lease, c.UpdatedAt = hookonce.StateDone, stored.Token+1, time.Time{}, now
	if text := claimsql.Storable(req.Type); text != "" {
		c.Type = text
	}
	if len(req.Digest) > 0 {
		c.Digest = req.Digest
	}
	return c
}

// Commit makes what the batch has, in one transaction, and all that was claimed in it is done; or nothing is. The batch has
// ended then. Errors: one that wraps [hookonce.ErrBusy] if somebody else has one of its keys by now, one that wraps
// [hookonce.ErrUnknownOutcome] if the connection was lost before the answer came, and one for the batch of a handler, which
// [BatchStore.Within] commits: nothing is sent then.
func (s *BatchStore) Commit(ctx context.Context, b *Batch) error {
	if err := b.commit(); err != nil {
		return fmt.Errorf("pgstore: commit: %w", err)
	}
	_, err := s.Store.Within(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "batch"}}, func(tx pgx.Tx, _ hookonce.Claim) error {
		return b.sendIn(ctx, tx.(handlerTx))
	})
	return err
}
