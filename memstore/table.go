package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
)

// rows are what is stored, or what a transaction is about to store.
type rows struct {
	claims    map[hookonce.Ref]hookonce.Claim
	responses map[hookonce.Ref]hookonce.Response
	ranks     map[string]mark[hookonce.Rank]
	states    map[string]mark[string]
	effects   map[int64]effect
	steps     map[row]int64 // the numbers of the effects that have a key
}

// mark is what a guard recorded, and when.
type mark[V any] struct {
	value V
	at    time.Time
}

func newRows() rows {
	return rows{
		claims:    map[hookonce.Ref]hookonce.Claim{},
		responses: map[hookonce.Ref]hookonce.Response{},
		ranks:     map[string]mark[hookonce.Rank]{},
		states:    map[string]mark[string]{},
		effects:   map[int64]effect{},
		steps:     map[row]int64{},
	}
}

// row names a row that can be locked, whether it is there or not.
type row struct {
	table string
	ref   hookonce.Ref
	step  string
}

func claimRow(ref hookonce.Ref) row { return row{table: "claims", ref: ref} }

// table is what all stores over the same claims share: the committed rows, and which ones are held by
// transactions that are still open.
type table struct {
	mu sync.Mutex
	rows
	locks      map[row]chan struct{} // closed when the holder lets go
	lastEffect int64
}

func newTable() *table { return &table{rows: newRows(), locks: map[row]chan struct{}{}} }

func (t *table) claim(ref hookonce.Ref) (hookonce.Claim, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.claims[ref]
	c.Digest = bytes.Clone(c.Digest)
	return c, ok
}

// add stores what a transaction staged. The caller holds mu.
func (t *table) add(r rows) {
	maps.Copy(t.claims, r.claims)
	maps.Copy(t.responses, r.responses)
	maps.Copy(t.ranks, r.ranks)
	maps.Copy(t.states, r.states)
	maps.Copy(t.effects, r.effects)
	maps.Copy(t.steps, r.steps)
}

// lock waits until the row is free and takes it. It returns [hookonce.ErrBusy] when timeout fires
// first, and ctx's error when ctx ends first.
func (t *table) lock(ctx context.Context, r row, timeout <-chan time.Time) error {
	for {
		released := t.tryLock(r)
		if released == nil {
			return nil
		}
		select {
		case <-released:
		case <-timeout:
			return fmt.Errorf("memstore: %s: %w", r.ref, hookonce.ErrBusy)
		case <-ctx.Done():
			return fmt.Errorf("memstore: %s: %w", r.ref, context.Cause(ctx))
		}
	}
}

// tryLock takes the row and returns nil, or returns what is closed when its holder lets go.
func (t *table) tryLock(r row) (released chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ch, held := t.locks[r]; held {
		return ch
	}
	t.locks[r] = make(chan struct{})
	return nil
}

func (t *table) unlock(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.locks[r])
	delete(t.locks, r)
}
