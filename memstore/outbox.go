package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// effect is a row of the outbox.
type effect struct {
	hookonce.QueuedEffect
	updatedAt time.Time
}

// seen returns the effect as callers get it.
func (e effect) seen() hookonce.QueuedEffect {
	e.Payload = bytes.Clone(e.Payload)
	return e.QueuedEffect
}

// dueAt returns when somebody may take the effect; false: never.
func (e effect) dueAt() (time.Time, bool) {
	switch e.State {
	case hookonce.StatePending, hookonce.StateFailed:
		return e.Due, true
	case hookonce.StateProcessing:
		return e.Lease, true
	}
	return time.Time{}, false
}

// Enqueue implements [hookonce.Outbox]. It waits for another transaction that stages an effect of the same
// event and step until ctx ends.
func (s *Store) Enqueue(ctx context.Context, tx *Tx, e hookonce.Effect) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if err := tx.usable(ctx); err != nil {
		return err
	}
	now := s.now()
	e.Step, e.Payload = cmp.Or(e.Step, e.Name), bytes.Clone(e.Payload)
	e.Due = instant(e.Due)
	if e.Due.IsZero() {
		e.Due = now
	}
	id := s.table.nextEffect()
	if e.Key != "" {
		if err := tx.takeStep(ctx, row{"effects", e.Ref, e.Step}, id); err != nil {
			return err
		}
	}
	tx.effects[id] = effect{hookonce.QueuedEffect{Effect: e, ID: id, State: hookonce.StatePending, EnqueuedAt: now}, now}
	return nil
}

// takeStep gives the step to the effect with that number, if no other has it.
func (tx *Tx) takeStep(ctx context.Context, step row, id int64) error {
	if err := tx.lock(ctx, step, nil); err != nil {
		return err
	}
	if _, taken := read(tx, func(r *rows) map[row]int64 { return r.steps }, step); taken {
		return fmt.Errorf("memstore: effect %q of %s: %w", step.step, step.ref, hookonce.ErrEffectExists)
	}
	tx.steps[step] = id
	return nil
}

// nextEffect returns a number that no effect has.
func (t *table) nextEffect() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastEffect++
	return t.lastEffect
}

// instant returns t in the resolution that every store keeps.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
