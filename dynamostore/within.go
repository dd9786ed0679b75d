package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
)

// Within implements [hookonce.TxStore]: claim, guards and what fn adds to the batch are one TransactWriteItems.
//
// It is decided at the commit who wins, and nobody waits for anybody: of copies that overlap each may run fn, and one of them
// commits. For the others nothing of what fn collected happens, and they are answered by what the first one left: the verdict is
// Duplicate without an error, or Busy or Pinned. So fn may have run beside those three. Keep calls to other systems out of
// fn, or send keys along ([hookonce.Transport]).
//
// A transaction whose answer is lost is sent again as the same one, for as long as [WithWait] says: DynamoDB keeps its token ten
// minutes. If no answer settles what came of it, the error wraps [hookonce.ErrUnknownOutcome], also when a later sending was
// turned away, and the trace that is left decides: it finds the work done, which is then answered as such, without an error; or
// it keeps the transaction from ever being made. Where it cannot be written the error wraps [hookonce.ErrTraceLost] as well,
// and the work may be done, as it may for an event without a key, which leaves no trace.
//
// When one of fn's writes is refused the error is an [ItemError], or what [Batch.OnRefused] makes of it.
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(b *Batch, c hookonce.Claim) error) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if ctx.Err() != nil {
		return hookonce.Claim{}, context.Cause(ctx)
	}
	b := NewBatch()
	c, err := s.ClaimTx(ctx, b, req)
	if err != nil || c.Verdict == hookonce.Duplicate {
		return c, err
	}
	if req.Key != "" {
		b.own = b.claims[0]
	}
	return s.attempt(ctx, b, c, fn)
}

// attempt runs fn and commits, or leaves a trace.
func (s *Store) attempt(ctx context.Context, b *Batch, c hookonce.Claim, fn func(*Batch, hookonce.Claim) error) (end hookonce.Claim, err error) {
	end, err = c, errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		b.end()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			end, err = s.ended(ctx, b, end, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(b, c); err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return end, err
	}
	b.end()
	err = s.commit(ctx, b)
	if b.own != nil {
		end = b.own.next.Claim
	}
	return end, err
}

// ended is what comes of an attempt that ended with err.
func (s *Store) ended(ctx context.Context, b *Batch, c hookonce.Claim, err error) (hookonce.Claim, error) {
	var lost *lostClaim
	if errors.As(err, &lost) && lost.own {
		return lost.claim, told(lost.claim)
	}
	err = s.trace(ctx, b, c, err)
	if err == nil {
		return c, nil
	}
	return c, fmt.Errorf("dynamostore: %s: attempt %d: %w", c.Ref, c.Token, err)
}

// told returns the error that a claim is answered with inside a transaction.
func told(c hookonce.Claim) error {
	return wrap("claim", c.Ref, c.Verdict.Err())
}

// ClaimTx implements [hookonce.TxStore]. It reads the claim, strongly consistent, and waits for nobody: if somebody else takes
// the key before the commit, the commit fails with an error that wraps [hookonce.ErrBusy].
func (s *Store) ClaimTx(ctx context.Context, b *Batch, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(ctx); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	if own := b.claimed(req.Ref); own != nil {
		c := own.next.Claim
		c.Verdict, c.Conflict = hookonce.Duplicate, req.Conflicts(c.Digest)
		return c, nil
	}
	seen, err := s.record(ctx, req.Ref)
	if err != nil {
		return hookonce.Claim{}, wrap("claim", req.Ref, err)
	}
	next := decide(seen, req, s.now())
	if next.Verdict != hookonce.Acquired {
		return next.Claim, told(next.Claim)
	}
	next.State = hookonce.StateDone
	if err := b.room(sizeOf(next.item(0))); err != nil {
		return hookonce.Claim{}, err
	}
	b.claims = append(b.claims, &staged{req: req, seen: seen, next: next})
	return next.Claim, nil
}

// KeepResponse implements [hookonce.TxResponseStore]. The response is a part of the claim's item, and may have [MaxResponse]
// bytes. It returns an error that wraps [hookonce.ErrNotFound] if b did not claim ref.
func (s *Store) KeepResponse(ctx context.Context, b *Batch, ref hookonce.Ref, r hookonce.Response) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(ctx); err != nil {
		return err
	}
	own := b.claimed(ref)
	if own == nil {
		return wrap("keep the response of", ref, hookonce.ErrNotFound)
	}
	if err := fits(r); err != nil {
		return wrap("keep the response of", ref, err)
	}
	before := sizeOf(own.next.item(0))
	own.next.response = &r
	b.size += sizeOf(own.next.item(0)) - before
	return nil
}

// Commit makes what the batch has collected, and all that was claimed in it is done; or nothing is. The batch has ended then.
// Errors: one that wraps [hookonce.ErrBusy] if somebody else has one of the keys by now; an [ItemError], or what
// [Batch.OnRefused] makes of it; and one that wraps [hookonce.ErrUnknownOutcome] if the answer to a sending was lost and no
// later one settled what came of it.
func (s *Store) Commit(ctx context.Context, b *Batch) error {
	b.mu.Lock()
	ended := b.ended
	b.ended = true
	b.mu.Unlock()
	if ended {
		return errEnded
	}
	err := s.commit(ctx, b)
	if err != nil {
		return fmt.Errorf("dynamostore: commit: %w", err)
	}
	return nil
}

// lostClaim says that a claim of the batch is not to be had any more. Own is whether it is the one of Within.
type lostClaim struct {
	claim hookonce.Claim
	own   bool
}

// Error implements error.
func (l *lostClaim) Error() string {
	return fmt.Sprintf("%s was decided by somebody else before the commit (%s)", l.claim.Ref, l.claim.Verdict)
}

// Unwrap returns what a caller may do: nothing was written, and whoever tries again is told.
func (l *lostClaim) Unwrap() error { return cmp.Or(l.claim.Verdict.Err(), hookonce.ErrBusy) }

// commit sends the batch, which has ended. Where a claim was changed by somebody and may still be taken, it is taken as it is
// now.
func (s *Store) commit(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	if b.len() == 0 {
		return nil
	}
	for range rounds {
		lost, err := s.transact(ctx, b)
		again, err := s.answered(ctx, b, err)
		var gone *lostClaim
		switch {
		case err != nil && lost != nil && !again && !errors.As(err, &gone):
			return unsettled(lost, err)
		case err != nil || !again:
			return err
		}
		b.attempt = newAttempt() // it is another transaction: the one before can never be made, because its condition is gone
	}
	return errContended
}

// answered says what follows from the last answer to a batch. If again, a claim was changed by somebody, so that the batch as it
// was sent was not made, and never will be.
func (s *Store) answered(ctx context.Context, b *Batch, err error) (again bool, _ error) {
	var cancelled *types.TransactionCanceledException
	switch answer := classify(err); {
	case answer == done:
		return false, nil
	case answer == turnedAway, answer == unknown, !errors.As(err, &cancelled):
		return false, s.explain(b, err)
	}
	return s.cancelled(ctx, b, cancelled.CancellationReasons)
}

// explain is [explain] for a batch. What the handler added is about tables of its own, and the service does not tell which
// one it means: the remedy of the store's own would lead astray.
func (s *Store) explain(b *Batch, err error) error {
	switch theirs := b.tables(); {
	case len(theirs) == 0:
		return explain(err)
	case missing(err):
		return fmt.Errorf("one of the tables %q is not there (in this region): %w", append(theirs, s.table), err)
	case denied(err):
		return fmt.Errorf("the role lacks a right that docs/dynamodb.md lists, or one on a table that the handler writes to: %w", err)
	}
	return err
}

// unsettled is the error of a batch of which a sending was not answered, with what the last one was told.
func unsettled(lost, last error) error {
	if errors.Is(last, lost) {
		return fmt.Errorf("%w: %w", hookonce.ErrUnknownOutcome, last)
	}
	return fmt.Errorf("%w: %w; before that there was no answer: %w", hookonce.ErrUnknownOutcome, last, lost)
}

// transact sends the batch until it is answered and not turned away, or the wait is over. To the service that is once: the token
// makes every repetition the same transaction. Lost is the error of a sending that was not answered: it may have been made, or
// be under way still, and what a later sending is told (that it is one too many, that the role has lapsed, that nobody listens)
// is true of that sending alone. The client's own repetitions would hide it.
func (s *Store) transact(ctx context.Context, b *Batch) (lost, err error) {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(b.attempt)}
	for _, c := range b.claims {
		seen := standing(c.seen)
		c.next.attempt = b.attempt
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.table, Item: c.next.item(s.expiry(c.req.Source, c.next.UpdatedAt)), ConditionExpression: &seen.text,
			ExpressionAttributeValues: seen.values, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
	}
	for _, g := range b.guards {
		in.TransactItems = append(in.TransactItems, g.write(s.table, b.attempt))
	}
	in.TransactItems = append(in.TransactItems, b.writes...)
	err = s.repeatedly(ctx, func() error {
		_, err := s.client.TransactWriteItems(ctx, in, once)
		err = contended(err, len(b.claims))
		if classify(err) == unknown {
			lost = err
		}
		return err
	}, turnedAway, unknown)
	return lost, err
}

// cancelled says what follows from the reasons for which nothing was made. Only a claim that has
// the batch's own name says that it was made all the same, earlier: then, and never else, the error
// is nil and there is nothing to do again. If again, claims were decided anew.
func (s *Store) cancelled(ctx context.Context, b *Batch, reasons []types.CancellationReason) (again bool, err error) {
	if len(reasons) != b.len() {
		return false, fmt.Errorf("the service gave %d reasons for %d items", len(reasons), b.len())
	}
	var lost error
	for i, c := range b.claims {
		if aws.ToString(reasons[i].Code) != codeCondition {
			continue
		}
		seen, err := s.fresh(ctx, c.req.Ref, reasons[i].Item)
		switch {
		case err != nil:
			return false, err
		case seen != nil && seen.attempt == b.attempt:
			return false, nil // the answer to an earlier sending was lost
		}
		next := decide(seen, c.req, s.now())
		if next.Verdict != hookonce.Acquired {
			lost = cmp.Or(lost, error(&lostClaim{next.Claim, c == b.own}))
			continue
		}
		next.State, next.response = hookonce.StateDone, c.next.response
		c.seen, c.next, again = seen, next, true
	}
	if lost != nil {
		return false, lost
	}
	if err := b.refusals(reasons); err != nil || again {
		return again, err
	}
	return false, errUnexplained
}

// errUnexplained says that a transaction was cancelled, and that no reason stands against it.
var errUnexplained = errors.New("the service cancelled the transaction without a reason; try again")

// fresh returns the claim that a condition failed on: what the service shows, or else what it says when it is asked.
func (s *Store) fresh(ctx context.Context, ref hookonce.Ref, shown item) (*record, error) {
	if shown != nil {
		return shown.record(ref)
	}
	return s.record(ctx, ref)
}

// refusals is what the reasons say about claims, guards and the handler's writes, which come in
// that order; nil if they were no obstacle. A claim whose condition failed is none: it is decided
// anew.
func (b *Batch) refusals(reasons []types.CancellationReason) error {
	var all []error
	for i, r := range reasons {
		code, guard, write := aws.ToString(r.Code), i-len(b.claims), i-len(b.claims)-len(b.guards)
		switch {
		case !stands(r), guard < 0 && code == codeCondition:
		case guard < 0:
			all = append(all, notTaken("claim of "+b.claims[i].req.Ref.String(), r))
		case write < 0 && code == codeCondition:
			all = append(all, fmt.Errorf("another transaction has changed %q meanwhile: nothing was written, try again", b.guards[guard].key))
		case write < 0:
			all = append(all, notTaken("guard "+b.guards[guard].key, r))
		default:
			refused := &ItemError{Index: write, Code: code, Message: aws.ToString(r.Message), Item: r.Item}
			var err error
			if b.explains != nil {
				err = b.explains(refused)
			}
			all = append(all, cmp.Or(err, error(refused)))
		}
	}
	return errors.Join(all...)
}

// notTaken is the error of an item of the store's own that the service refuses whatever stands
// there.
func notTaken(what string, r types.CancellationReason) error {
	return fmt.Errorf("the service does not take the item of the %s: %s: %s; see whether an index of the table wants another type of an attribute", what, aws.ToString(r.Code), aws.ToString(r.Message))
}

// traceTimeout bounds the recording of a failure.
const traceTimeout = 5 * time.Second

// trace records that the attempt of the batch failed with cause, and returns cause. A permanent or pinned failure that has to
// give way is not on record: then the error wraps [hookonce.ErrTraceLost] as well. It returns nil if it finds that the
// attempt did not fail.
func (s *Store) trace(ctx context.Context, b *Batch, attempt hookonce.Claim, cause error) error {
	f := hookonce.FailureOf(ctx, attempt.Ref, cause)
	if b.own == nil || f.Forgets(attempt.Token) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceTimeout)
	defer cancel()
	attempt.State, attempt.LastError, attempt.Pinned = f.State(), f.Text(), 0
	if f.Pin {
		attempt.Pinned = attempt.Token
	}
	left, err := s.leave(ctx, b, attempt)
	switch {
	case errors.Is(err, errCommitted):
		return nil
	case err != nil:
		return fmt.Errorf("%w (%w: %w)", cause, hookonce.ErrTraceLost, err)
	case left || !f.Dead && !f.Pin:
		return cause
	}
	return fmt.Errorf("%w (%w: the key belongs to another attempt by now)", cause, hookonce.ErrTraceLost)
}

// errCommitted says that the transaction was made, although its answer was lost.
var errCommitted = errors.New("the transaction was made")

// leave stores the failed attempt unless it has to give way, and reports whether it did. What it stores keeps the batch from
// ever being made, because that expects the claim as it was.
func (s *Store) leave(ctx context.Context, b *Batch, attempt hookonce.Claim) (bool, error) {
	now, seen := s.now(), b.own.seen
	for range rounds {
		next := &record{Claim: attempt, attempt: newAttempt()}
		next.Lease, next.UpdatedAt = time.Time{}, now
		if seen != nil {
			if seen.attempt == b.attempt {
				return false, errCommitted
			}
			if !seen.YieldsTo(attempt, now) {
				return false, nil
			}
			next.FirstSeen, next.Pinned = seen.FirstSeen, cmp.Or(seen.Pinned, next.Pinned)
			if len(next.Digest) == 0 {
				next.Digest = seen.Digest
			}
		}
		err := s.put(ctx, next.item(0), standing(seen))
		var no *refused
		if !errors.As(err, &no) {
			return err == nil, err
		}
		if seen, err = no.item.record(attempt.Ref); err != nil {
			return false, err
		}
	}
	return false, errContended
}
