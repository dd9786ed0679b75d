package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// Within implements [hookonce.TxStore]. A commit that the database refuses (a deferred constraint, a
// serialization failure) is a failed attempt like any other, unless another attempt was in the way and has done the work: then the
// event is a duplicate. In a Galera cluster this is how all but one of the nodes learn that they lost a race.
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(tx *sql.Tx, c hookonce.Claim) error) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	a, err := s.open(ctx, req)
	if err != nil {
		return hookonce.Claim{}, err
	}
	if a.tx == nil {
		return a.claim, told(a.claim)
	}
	if err := a.run(ctx, fn); err != nil {
		switch c, lost := s.lostRace(ctx, req, err); {
		case lost && a.made(c):
			err = fmt.Errorf("%w (%w: %w)", err, hookonce.ErrTraceLost, claimsql.ErrAlike)
		case lost:
			return c, nil
		}
		return a.claim, fmt.Errorf("sqlstore: %s: attempt %d: %w", req.Ref, a.claim.Token, err)
	}
	return a.claim, nil
}

// lostRace reports whether an attempt failed because another one did the work meanwhile, on another node of a cluster, and
// returns the claim as that one left it. The attempt is rolled back.
func (s *Store) lostRace(ctx context.Context, req hookonce.ClaimRequest, cause error) (c hookonce.Claim, lost bool) {
	if req.Key == "" || s.dialect.contended(cause) != again || errors.Is(cause, hookonce.ErrUnknownOutcome) {
		return c, false
	}
	c, settled, err := s.peek(ctx, req)
	return c, err == nil && settled && c.Verdict == hookonce.Duplicate
}

// open begins the transaction and claims. If there is nothing to do the attempt has no transaction.
func (s *Store) open(ctx context.Context, req hookonce.ClaimRequest) (a *attempt, err error) {
	if req.Key != "" {
		if c, settled, err := s.peek(ctx, req); settled || err != nil {
			return &attempt{claim: c}, err
		}
	}
	err = s.insist(ctx, func() (err error) {
		a, err = s.begin(ctx, req)
		return err
	})
	if err != nil {
		c, err := s.patient(ctx, req, hookonce.Claim{}, err)
		return &attempt{claim: c}, err
	}
	return a, nil
}

// begin is one try of open.
func (s *Store) begin(ctx context.Context, req hookonce.ClaimRequest) (*attempt, error) {
	// database/sql rolls a transaction back when its context ends, also in the middle of a commit.
	// The caller's context may end the work, but not the commit.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &attempt{store: s, claim: unkeyed(req), cancel: cancel, detach: context.AfterFunc(ctx, cancel)}
	if err := a.begin(own); err != nil {
		a.rollback()
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w while %w", cause, err)
		}
		return nil, err
	}
	err := a.own(ctx, req)
	if err == nil && a.claim.Verdict == hookonce.Duplicate {
		err = inTime(own, a.tx.Commit()) // which waits for a standby of Postgres, if commits do
		a.over = err == nil
	}
	if err != nil || !a.holds() {
		a.rollback()
	}
	return a, err
}

// attempt is a try at the effect, inside the transaction that holds the claim.
type attempt struct {
	store *Store
	claim hookonce.Claim
	on    *bounded
	tx    *sql.Tx // nil: there is nothing to do
	// number is the transaction's, on databases that give it one.
	number int64
	looked bool // for the mark
	over   bool // committed by the store
	torn   bool // the handler may have committed the claim without what came after it
	// detach ends the caller's hold on the transaction; it reports false if the caller's context
	// ended first, which rolls the transaction back.
	detach func() bool
	cancel context.CancelFunc
}

// own claims, and readies the transaction for the handler if there is something to do.
func (a *attempt) own(ctx context.Context, req hookonce.ClaimRequest) (err error) {
	if req.Key != "" {
		r, err := a.store.claim(ctx, a.tx, a.store.atomic(req))
		if err != nil {
			return err
		}
		if a.claim, a.number = r.claim, r.number; !a.holds() {
			return nil
		}
	}
	if err := a.on.lift(ctx, a.tx); err != nil {
		return err
	}
	if a.number, err = a.store.dialect.mark(ctx, a.tx, a.number); err == nil {
		a.on.refuse()
	}
	return err
}

// made reports whether a claim is, or looks like, what the attempt made.
func (a *attempt) made(c hookonce.Claim) bool {
	return c.Token == a.claim.Token && c.FirstSeen.Equal(a.claim.FirstSeen) && c.UpdatedAt.Equal(a.claim.UpdatedAt)
}

// holds reports whether the handler is to run.
func (a *attempt) holds() bool {
	return a.claim.Verdict == hookonce.Acquired || a.claim.Verdict == hookonce.Unkeyed
}

// begin begins the transaction, which waits for locks no longer than the bounded wait if it is to claim.
func (a *attempt) begin(ctx context.Context) (err error) {
	if a.on, err = a.store.alone(ctx, a.claim.Key != ""); err != nil {
		return err
	}
	a.tx, err = a.on.BeginTx(ctx, nil)
	return err
}

// run calls fn and commits. When that fails, or fn does not return, it rolls back and leaves a trace.
func (a *attempt) run(ctx context.Context, fn func(tx *sql.Tx, c hookonce.Claim) error) (err error) {
	size := a.store.size()
	a.store.watch.Enter(size, a.store.waits)
	err = errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		err = a.store.watch.Explain(ctx, size, a.store.waits, err)
		a.store.watch.Leave(size)
		if err != nil {
			a.inspect(ctx, err)
		}
		a.rollback()
		if err != nil {
			err = a.trace(ctx, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	a.torn = a.number != 0 // which tells the trace
	err = fn(a.tx, a.claim)
	switch {
	case err == nil:
		return a.commit(ctx)
	case a.on.veto != nil && a.on.veto.refused.Load():
		return fmt.Errorf("%w (%w)", err, claimsql.ErrRefused)
	}
	return err
}

// commit commits under a deadline of the store's own, unless the caller's context has ended.
func (a *attempt) commit(ctx context.Context) error {
	if !a.detach() || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	deadline := time.AfterFunc(a.store.patience, a.cancel)
	defer deadline.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.store.patience)
	defer cancel()
	intact, err := a.intact(ctx)
	by := errors.Is(err, sql.ErrTxDone)
	switch {
	case by, err == nil && !intact:
		return a.ended(ctx, by)
	case err != nil:
		return err
	}
	a.on.allow()
	a.torn = false
	err = a.tx.Commit()
	if err == nil && !deadline.Stop() { // see inTime
		err = context.DeadlineExceeded
	}
	switch {
	case err == nil:
		a.over = true
		return nil
	case a.store.dialect.refused(err):
		return fmt.Errorf("the commit was refused: %w", err)
	}
	return fmt.Errorf("%w: %w", hookonce.ErrUnknownOutcome, err)
}

// intact reports whether the transaction is still the one with the mark. A connection where it is not, or where
// that cannot be told, is not as the store has made it: the locks of LOCK TABLES, for one, outlive a ROLLBACK.
func (a *attempt) intact(ctx context.Context) (intact bool, err error) {
	intact, err = a.store.dialect.unmark(ctx, a.tx, a.number)
	a.looked, a.on.lost = true, !intact || err != nil
	return intact, err
}

// inspect looks, before the rollback of an attempt that failed with cause, whether the transaction was over
// already, where statements commit in passing. It knows of one error that rolls back: the copy that then won at the
// same microsecond as this attempt would look like it.
func (a *attempt) inspect(ctx context.Context, cause error) {
	if a.tx == nil || a.looked || a.on.hold == (setting{}) {
		return
	}
	if !a.detach() { // it is being rolled back
		a.on.lost = true
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liftDeadline)
	defer cancel()
	intact, err := a.intact(ctx)
	a.torn = err == nil && !intact && contendedMySQL(cause) != again
}

// ended ends an attempt whose transaction was over before the store's commit, and returns the error that names
// the reason. By tells that it was ended with a method of the transaction.
func (a *attempt) ended(ctx context.Context, by bool) error {
	veto := a.on.veto
	switch {
	case veto != nil && veto.refused.Load():
		return claimsql.ErrRefused
	case veto != nil && by:
		return claimsql.ErrRolledBack
	case veto != nil:
		return claimsql.ErrSwept
	}
	var q querier = a.tx
	if by {
		a.rollback() // which frees the connection
		q = a.store.db
	}
	look := func() (bool, error) { return a.store.dialect.committed(a.store.dialect, ctx, q, a.claim, a.number) }
	committed, err := look()
	if mysqlNumber(err) == 1100 { // ER_TABLE_NOT_LOCKED: after LOCK TABLES a connection reads nothing else
		q = a.store.db
		committed, err = look()
	}
	switch {
	case err != nil:
		a.torn = !by
		return fmt.Errorf("%w: the handler ended the transaction, and whether it committed cannot be told: %w: leave the end of the transaction to the store",
			hookonce.ErrUnknownOutcome, err)
	case committed && !by:
		return a.complete(ctx)
	case committed:
		a.torn = false
		return claimsql.ErrCommitted
	case by:
		return claimsql.ErrRolledBack
	}
	return claimsql.ErrSwept
}

// complete commits what the handler did after it had committed the claim: nothing would do it again.
func (a *attempt) complete(ctx context.Context) error {
	_, err := a.tx.ExecContext(ctx, "COMMIT")
	if a.torn = err != nil && !strings.Contains(err.Error(), "no transaction is active"); a.torn {
		return fmt.Errorf("%w: %w: %w", hookonce.ErrUnknownOutcome, claimsql.ErrCommitted, err)
	}
	return claimsql.ErrCommitted
}

// rollback ends the transaction, if it is open, and whatever belongs to it. A connection of its own is closed
// if that fails: to put its settings back could commit what is left.
func (a *attempt) rollback() {
	if a.tx != nil && !a.over {
		// Where its context has ended, database/sql rolls the transaction back in a goroutine of its own, which may
		// not have come to it: what is said on the connection now could come first, and commit.
		a.on.lost = a.tx.Rollback() != nil || a.on.lost
	}
	a.detach()
	a.cancel()
	a.on.end()
	a.tx = nil
}

// trace records that the attempt under c failed with cause, under a deadline of its own, and returns
// cause. An attempt without a key leaves no trace: there is nothing to find it by. A permanent or pinned
// failure that has to give way to another attempt is not on record: then the error wraps
// [hookonce.ErrTraceLost] as well.
//
// It is safe even if the commit's outcome is unknown: the statement waits for a transaction that is
// still under way, and then leaves done work alone. Only of an attempt that is torn is the claim opened again which
// a commit of the handler's, or in passing, made durable: what came after that may be lost. The error says so where
// that is certain.
func (a *attempt) trace(ctx context.Context, cause error) error {
	s, c := a.store, a.claim
	f := hookonce.FailureOf(ctx, c.Ref, cause)
	if c.Key == "" {
		return cause
	}
	opening := fmt.Errorf("%w: %w", claimsql.ErrTorn, cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceDeadline)
	defer cancel()
	lost := func(err error) error {
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, s.explain(ctx, s.db, err))
	}
	if f.Forgets(c.Token) {
		stands, err := a.stands(ctx)
		switch {
		case err != nil:
			return lost(err)
		case !stands:
			return cause
		}
	}
	if a.number == 0 {
		if stands, _ := a.stands(ctx); stands {
			cause, f.Err = opening, opening
		}
	}
	failed := c
	failed.State, failed.UpdatedAt, failed.LastError, failed.Pinned = f.State(), s.now(), f.Text(), 0
	if f.Pin {
		failed.Pinned = c.Token
	}
	own := torn{number: a.number, error: hookonce.Failure{Err: opening}.Text()}
	if a.torn {
		own.made = c.UpdatedAt
	}
	var recorded, opened bool
	leave := func() (err error) {
		recorded, opened, err = s.dialect.trace(s.dialect, ctx, s.db, failed, own)
		return err
	}
	err := s.insist(ctx, leave)
	stands := false
	if err != nil || !recorded {
		stands, _ = a.stands(ctx)
	}
	if err != nil && stands { // without a trace the work would be lost
		err = s.insist(ctx, leave)
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

// stands reports whether the handler of an attempt that is torn committed the claim.
func (a *attempt) stands(ctx context.Context) (bool, error) {
	if !a.torn {
		return false, nil
	}
	return a.store.dialect.committed(a.store.dialect, ctx, a.store.db, a.claim, a.number)
}

var errGaveWay = errors.New("the key belongs to another attempt by now")
