package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// Tx is a transaction. It holds the keys that it claimed, and the rows that it asked guards about, until
// it ends. Like the transactions of a database driver it must not be used by several goroutines at once.
type Tx struct {
	store *Store
	rows  // staged
	held  []row
	hooks []func()
	ended bool
}

// errEnded says that a transaction was used after it had ended.
var errEnded = errors.New("memstore: the transaction has already ended")

// Begin starts a transaction, for [Store.ClaimTx] and everything else that takes one. The caller ends it
// with Commit or Rollback.
func (s *Store) Begin() *Tx { return &Tx{store: s, rows: newRows()} }

// OnCommit stages an effect: f runs when the transaction commits, in the order of the calls, before
// anybody can see the transaction's claims. It must not call the store.
func (tx *Tx) OnCommit(f func()) { tx.hooks = append(tx.hooks, f) }

// Commit makes what is staged visible and runs what OnCommit was given, all at once. An error wraps
// [hookonce.ErrUnknownOutcome] if it comes from the hook of [WithCommit].
func (tx *Tx) Commit() error {
	if tx.ended {
		return errEnded
	}
	defer tx.end()
	if err := tx.store.apply(tx.persist); err != nil {
		return fmt.Errorf("memstore: commit: %w: %w", hookonce.ErrUnknownOutcome, err)
	}
	return nil
}

// Rollback forgets everything that is staged.
func (tx *Tx) Rollback() error {
	if tx.ended {
		return errEnded
	}
	tx.end()
	return nil
}

func (tx *Tx) persist() {
	t := tx.store.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(tx.rows)
	for _, f := range tx.hooks {
		f()
	}
}

// end lets go of the rows. It may be called again.
func (tx *Tx) end() {
	for _, r := range tx.held {
		tx.store.table.unlock(r)
	}
	tx.held, tx.ended = nil, true
}

// bounded is claim with the store's bounded wait.
func (s *Store) bounded(ctx context.Context, tx *Tx, req hookonce.ClaimRequest, won func(*hookonce.Claim)) (hookonce.Claim, error) {
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	c, err := s.claim(ctx, tx, req, timer.C, won)
	if errors.Is(err, hookonce.ErrBusy) {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Busy}, nil
	}
	return c, err
}

// claim takes the key and decides. If the caller won, won completes the new claim and stores it.
func (s *Store) claim(ctx context.Context, tx *Tx, req hookonce.ClaimRequest, timeout <-chan time.Time, won func(*hookonce.Claim)) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if err := tx.usable(ctx); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	if c, ok := tx.claims[req.Ref]; ok {
		return answer(c, req, hookonce.Duplicate), nil
	}
	if err := tx.lock(ctx, claimRow(req.Ref), timeout); err != nil {
		return hookonce.Claim{}, err
	}
	c := s.decide(req)
	if c.Verdict == hookonce.Acquired {
		won(&c)
	}
	return c, nil
}

// usable returns an error if nothing can be done in the transaction any more.
func (tx *Tx) usable(ctx context.Context) error {
	if tx.ended {
		return errEnded
	}
	return ctx.Err()
}

// lock takes the row until the transaction ends.
func (tx *Tx) lock(ctx context.Context, r row, timeout <-chan time.Time) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	if slices.Contains(tx.held, r) {
		return nil
	}
	if err := tx.store.table.lock(ctx, r, timeout); err != nil {
		return err
	}
	tx.held = append(tx.held, r)
	return nil
}

// read looks key up as the transaction sees it: among what it staged, then among what is committed.
func read[K comparable, V any](tx *Tx, of func(*rows) map[K]V, key K) (V, bool) {
	if v, ok := of(&tx.rows)[key]; ok {
		return v, true
	}
	t := tx.store.table
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := of(&t.rows)[key]
	return v, ok
}

// decide is the rule of claiming: who owns the work under req now.
func (s *Store) decide(req hookonce.ClaimRequest) hookonce.Claim {
	now := s.now()
	c, exists := s.table.claim(req.Ref)
	if !exists {
		return hookonce.Claim{
			Ref: req.Ref, Verdict: hookonce.Acquired, Token: 1,
			Type: req.Type, Digest: bytes.Clone(req.Digest), FirstSeen: now, UpdatedAt: now,
		}
	}
	c = answer(c, req, c.VerdictFor(req, now))
	if c.Verdict != hookonce.Acquired {
		return c
	}
	c.Token++
	c.UpdatedAt, c.Lease = now, time.Time{}
	if req.Type != "" {
		c.Type = req.Type
	}
	if len(req.Digest) > 0 {
		c.Digest = bytes.Clone(req.Digest)
	}
	return c
}

// answer is what a request is told about the stored claim c.
func answer(c hookonce.Claim, req hookonce.ClaimRequest, v hookonce.Verdict) hookonce.Claim {
	c.Verdict = v
	c.Conflict = req.Conflicts(c.Digest)
	return c
}

// ClaimTx implements [hookonce.TxStore]. It waits for another transaction that holds the key until
// ctx ends.
func (s *Store) ClaimTx(ctx context.Context, tx *Tx, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	c, err := s.claim(ctx, tx, req, nil, tx.stage)
	if err == nil {
		err = told(c)
	}
	return c, err
}

// told returns the error that c is answered with inside a transaction.
func told(c hookonce.Claim) error {
	if err := c.Verdict.Err(); err != nil {
		return fmt.Errorf("memstore: claim %s: %w", c.Ref, err)
	}
	return nil
}

// stage keeps a claim that was won until the commit.
func (tx *Tx) stage(c *hookonce.Claim) {
	c.State = hookonce.StateDone
	tx.put(*c)
}

// put stages c. The verdict and the conflict belong to a request, not to the claim.
func (tx *Tx) put(c hookonce.Claim) {
	c.Verdict, c.Conflict = 0, false
	tx.claims[c.Ref] = c
}
