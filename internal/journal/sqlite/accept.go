package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Accept implements [journal.Store]. The entries are stored one by one in one transaction. If the
// database refuses one of them, everything is taken back and done again with a savepoint around
// each entry.
func (s *Store) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	if len(batch) == 0 {
		return nil, ctx.Err()
	}
	a := acceptance{batch: batch, now: now.UnixMicro(), lease: lease.UnixMicro(), results: make([]journal.Result, len(batch))}
	err := s.write(ctx, "accepting", func(w *writer) error { return a.all(w) })
	if rowRefused(err) {
		err = s.write(ctx, "accepting one by one", func(w *writer) error { return a.each(w) })
	}
	if err != nil {
		return nil, err
	}
	s.events.added.Add(a.added)
	return a.results, nil
}

// acceptance is one call of Accept.
type acceptance struct {
	batch      []*journal.Record
	now, lease int64
	results    []journal.Result
	added      int64
}

// all stores the batch, and fails with the first row that is refused.
func (a *acceptance) all(w *writer) error {
	for i, e := range a.batch {
		if err := a.one(w, i, e); err != nil {
			return err
		}
	}
	return nil
}

// each stores the batch without the rows that are refused.
func (a *acceptance) each(w *writer) error {
	a.added = 0
	for i := range a.batch {
		err := w.guarded(func() error { return a.one(w, i, a.batch[i]) })
		if rowRefused(err) {
			a.results[i] = journal.Result{Err: err}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *acceptance) one(w *writer, i int, e *journal.Record) error {
	if err := e.Validate(); err != nil {
		a.results[i] = journal.Result{Err: err}
		return nil
	}
	n, err := w.insertEvent.exec(e.ID, e.Source, orNull(e.Key), e.Type, nullIfEmpty(e.Digest), e.ReceivedAt.UnixMicro(),
		orNull(e.Resource), rankOf(e.Rank), orNull(string(e.Rank.Kind)), int64(e.Vouched), orNull(e.Unrouted()), orNull(e.Listed))
	switch {
	case err != nil:
		return err
	case n == 0:
		return a.again(w, i, e)
	}
	a.results[i] = journal.Result{Status: journal.Accepted, ID: e.ID}
	if e.Key == "" {
		a.results[i].Status = journal.Unkeyed
	}
	a.added++
	if _, err := w.insertBody.exec(e.ID, notNull(e.Lines()), notNull(e.Body)); err != nil {
		return err
	}
	if e.HasLogicalKey() {
		if dropped, err := a.claimLogicalKey(w, i, e); err != nil || dropped {
			return err
		}
	}
	return a.open(w, e)
}

// open makes the deliveries of a new event.
func (a *acceptance) open(w *writer, e *journal.Record) error {
	for _, d := range e.Destinations {
		state, tries, due := "pending", int64(0), a.now
		if slices.Contains(e.Hold, d) {
			state, tries, due = "processing", 1, a.lease
		}
		var group any
		if slices.Contains(e.Ordered, d) {
			group = e.Group()
			if _, err := w.openGroup.exec(d, e.Group(), a.now); err != nil {
				return err
			}
		}
		if _, err := w.insertDelivery.exec(e.ID, d, state, tries, tries, due, group, int64(e.Origin())); err != nil {
			return err
		}
	}
	return nil
}

// claimLogicalKey gives the logical key of a new event to it, or names it the logical duplicate of the event that has it. It
// reports whether that one's deliveries stand for it.
func (a *acceptance) claimLogicalKey(w *writer, i int, e *journal.Record) (dropped bool, err error) {
	n, err := w.ownLogical.exec(e.ID, e.Source, e.LogicalKey, e.Key)
	if err != nil || n > 0 {
		return false, err
	}
	res := &a.results[i]
	if err := w.owner.query(func(row []driver.Value) error {
		res.LogicalDuplicateOf, res.LogicalDuplicateKey = row[0].(int64), row[1].(string)
		return nil
	}, e.Source, e.LogicalKey); err != nil {
		return false, err
	}
	if _, err := w.insertLogicalDuplicate.exec(e.ID, res.LogicalDuplicateOf, e.DropLogicalDuplicate); err != nil || !e.DropLogicalDuplicate {
		return false, err
	}
	if !e.Listed && !e.Bypassed {
		res.Redriven, err = a.redrive(w, res.LogicalDuplicateOf)
	}
	return true, err
}

// again answers a copy of what is stored, and re-drives what failed of it, unless it went past the store. One from a list changes
// nothing.
func (a *acceptance) again(w *writer, i int, e *journal.Record) error {
	res := journal.Result{Status: journal.Conflict, Done: true}
	var delivered int64 // whose deliveries count
	var unsupplied bool
	if err := w.first.query(func(row []driver.Value) error {
		res.ID, delivered, unsupplied = row[0].(int64), row[2].(int64), row[3].(int64) != 0 && !e.Listed
		if digest, _ := row[1].([]byte); e.Listed || unsupplied || bytes.Equal(digest, e.Digest) {
			res.Status = journal.Duplicate
		}
		return nil
	}, e.Source, e.Key); err != nil {
		return err
	}
	if unsupplied {
		if _, err := w.supplyDigest.exec(notNull(e.Digest), res.ID); err != nil {
			return err
		}
	}
	if journal.Coalesces(e.Key) {
		res.Status = journal.Duplicate
		if begun, err := a.begun(w, i, res.ID); err != nil || begun {
			return a.succeed(w, i, res.ID, err)
		}
	}
	if !e.Listed && !e.Bypassed {
		var err error
		if res.Redriven, err = a.redrive(w, delivered); err != nil {
			return err
		}
	}
	err := w.hasOpen.query(func([]driver.Value) error { res.Done = false; return nil }, delivered)
	a.results[i] = res
	return err
}

// redrive makes what failed of an event due, and reports whether there was anything.
func (a *acceptance) redrive(w *writer, event int64) (bool, error) {
	var groups [][2]any
	n := 0
	err := w.redrive.query(func(row []driver.Value) error {
		if n++; row[1] != nil {
			groups = append(groups, [2]any{row[0], row[1]})
		}
		return nil
	}, a.now, event)
	for _, l := range groups {
		if err == nil {
			_, err = w.openGroup.exec(l[0], l[1], a.now)
		}
	}
	return n > 0, err
}

// begun reports whether the event that is stored under the key of a coalescing entry does not take it in, because a delivery
// has begun or is done, or it goes elsewhere. One of the same batch has not begun.
func (a *acceptance) begun(w *writer, i int, stored int64) (bool, error) {
	if before := slices.IndexFunc(a.batch[:i], func(e *journal.Record) bool { return e.ID == stored }); before >= 0 {
		return !a.batch[before].TakesIn(a.batch[i].Event), nil
	}
	coming := map[string]bool{}
	err := w.coming.query(func(row []driver.Value) error { coming[row[0].(string)] = true; return nil }, stored)
	return !a.batch[i].Waits(coming), err
}

// succeed stores a coalescing entry under the key of what has begun, unless there was an error.
func (a *acceptance) succeed(w *writer, i int, stored int64, err error) error {
	if err != nil {
		return err
	}
	if _, err := w.releaseKey.exec(stored); err != nil {
		return err
	}
	return a.one(w, i, a.batch[i])
}

// orNull stores what is empty as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// rankOf is a rank's number, nil if there is none.
func rankOf(r hookonce.Rank) any {
	if r.IsZero() {
		return nil
	}
	return r.N
}

// nullIfEmpty makes NULL of a digest that is none: one that is still to be supplied is told by that.
func nullIfEmpty(digest []byte) any {
	if len(digest) == 0 {
		return nil
	}
	return digest
}

// notNull keeps an absent body apart from NULL, which the columns do not take.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
