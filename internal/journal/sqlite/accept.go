package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Accept implements [journal.Store]. The entries are stored one by one in one transaction. If the
// database refuses one of them, everything is taken back and done again with a savepoint around
// each entry.
func (s *Store) Accept(ctx context.Context, batch []*journal.Entry, now, lease time.Time) ([]journal.Result, error) {
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
	batch      []*journal.Entry
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

func (a *acceptance) one(w *writer, i int, e *journal.Entry) error {
	if err := e.Validate(); err != nil {
		a.results[i] = journal.Result{Err: err}
		return nil
	}
	var key any
	if e.Key != "" {
		key = e.Key
	}
	n, err := w.insertEvent.exec(e.ID, e.Source, key, e.Type, e.Digest, e.ReceivedAt.UnixMicro())
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
	if _, err := w.insertBody.exec(e.ID, notNull(e.Header), notNull(e.Body)); err != nil {
		return err
	}
	state, tries, due := "pending", int64(0), a.now
	if e.Hold {
		state, tries, due = "processing", 1, a.lease
	}
	for _, d := range e.Destinations {
		if _, err := w.insertDelivery.exec(e.ID, d, state, tries, tries, due); err != nil {
			return err
		}
	}
	return nil
}

// again answers a copy of what is stored, and re-drives what failed of it.
func (a *acceptance) again(w *writer, i int, e *journal.Entry) error {
	res := journal.Result{Status: journal.Conflict, Done: true}
	if err := w.first.query(func(row []driver.Value) error {
		res.ID = row[0].(int64)
		if digest, _ := row[1].([]byte); bytes.Equal(digest, e.Digest) {
			res.Status = journal.Duplicate
		}
		return nil
	}, e.Source, e.Key); err != nil {
		return err
	}
	if journal.Coalesces(e.Key) {
		res.Status = journal.Duplicate
		if begun, err := a.begun(w, i, res.ID); err != nil || begun {
			return a.succeed(w, i, res.ID, err)
		}
	}
	n, err := w.redrive.exec(a.now, res.ID)
	if err != nil {
		return err
	}
	res.Redriven = n > 0
	err = w.hasOpen.query(func([]driver.Value) error { res.Done = false; return nil }, res.ID)
	a.results[i] = res
	return err
}

// begun reports whether a delivery of the event that is stored under the key of a coalescing entry has
// begun or is done. One of the same batch has not.
func (a *acceptance) begun(w *writer, i int, stored int64) (bool, error) {
	if slices.ContainsFunc(a.batch[:i], func(e *journal.Entry) bool { return e.ID == stored }) {
		return false, nil
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

// notNull keeps an absent body apart from NULL, which the columns do not take.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
