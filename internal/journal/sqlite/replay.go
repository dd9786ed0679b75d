package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
)

// with runs f with a statement that is not kept.
func (w *writer) with(text string, f func(*stmt) error) (err error) {
	p, err := w.Conn.Prepare(text)
	if err != nil {
		return err
	}
	s := &stmt{Stmt: p}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}

// once runs a statement that is not kept and returns how many rows it changed.
func (w *writer) once(text string, args ...any) (n int64, err error) {
	err = w.with(text, func(s *stmt) error {
		n, err = s.exec(args...)
		return err
	})
	return n, err
}

// ask runs a query that is not kept and calls each for every row.
func (w *writer) ask(text string, each func(row []driver.Value) error, args ...any) error {
	return w.with(text, func(s *stmt) error { return s.query(each, args...) })
}

// Replay implements [journal.Store]. While it has the turn to write nobody else does, so what another
// connection sees is what is there.
func (s *Store) Replay(ctx context.Context, r journal.Replay, limit int) (done journal.Replayed, err error) {
	if r.DryRun {
		plan, err := s.plan(ctx, s.readers, &r, limit, 0)
		return plan.Replayed, failed("counting what a replay would do", err)
	}
	err = s.write(ctx, "replaying", func(w *writer) (err error) {
		done, err = s.replay(ctx, w, r, limit)
		return err
	})
	if err != nil {
		return journal.Replayed{}, err
	}
	return done, nil
}

// replay carries out a replay and keeps its record.
func (s *Store) replay(ctx context.Context, w *writer, r journal.Replay, limit int) (journal.Replayed, error) {
	audit, err := r.Begun(func() ([]journal.Audit, error) { return s.audits(ctx, s.inner, `WHERE id = ?`, r.Audit) })
	if err != nil {
		return journal.Replayed{}, err
	}
	plan, err := s.plan(ctx, s.inner, &r, limit, int(audit.Count))
	if err != nil || plan.Idle(&r) {
		return plan.Replayed, err
	}
	if r.Audit == 0 {
		if audit, err = s.audit(w, r.Record()); err != nil {
			return journal.Replayed{}, err
		}
	}
	if err := s.redrive(w, plan.Redrive); err != nil {
		return journal.Replayed{}, err
	}
	if err := s.create(w, plan.Create); err != nil {
		return journal.Replayed{}, err
	}
	plan.Audit = audit.ID
	_, err = w.once(s.in(`UPDATE {{.}}audits SET affected = affected + ? WHERE id = ?`), int64(plan.Deliveries), audit.ID)
	return plan.Replayed, err
}

// plan finds the next events that a replay looks at and decides what to do with them.
func (s *Store) plan(ctx context.Context, db reader, r *journal.Replay, limit, n int) (_ *journal.Plan, err error) {
	q := dialect.Replay(r)
	more := false
	if r.Only == nil {
		if more, err = s.narrow(ctx, db, q); err != nil {
			return &journal.Plan{}, err
		}
	}
	found, err := s.candidates(ctx, db, q, limit+1)
	if err != nil {
		return &journal.Plan{}, err
	}
	return r.Step(found, n, limit, more, q.End), nil
}

// candidates returns events with all their deliveries.
func (s *Store) candidates(ctx context.Context, db reader, q *search.Search, limit int) ([]journal.Candidate, error) {
	query, args := s.find(q, limit)
	events, err := rows(ctx, db, query, args, scanSummary)
	if err != nil {
		return nil, err
	}
	found := make([]journal.Candidate, len(events))
	for i, e := range events {
		open, err := s.openDeliveries(ctx, db, e.ID)
		if err != nil {
			return nil, err
		}
		done, err := s.finished(ctx, db, e.ID, open)
		if err != nil {
			return nil, err
		}
		found[i] = journal.Candidate{ID: e.ID, Source: e.Source, Key: e.Key, Resource: e.Resource, HasBody: e.HasBody,
			Deliveries: append(open, done...)}
	}
	return found, nil
}

// queue has the ordering group of a delivery looked at in time, if it has one.
func (w *writer) queue(d journal.Delivery) error {
	if d.Group == "" {
		return nil
	}
	_, err := w.openGroup.exec(d.Destination, d.Group, d.Due.UnixMicro())
	return err
}

// redrive makes deliveries due that are failed or dead.
func (s *Store) redrive(w *writer, deliveries []journal.Delivery) error {
	const text = `UPDATE {{.}}deliveries SET state = 'pending', tries = 0, due_at = ?1, origin = 2,
			waits_since = CASE state WHEN 'dead' THEN ?4 ELSE waits_since END
		WHERE event_id = ?2 AND destination = ?3 AND state IN ('failed', 'dead')`
	return w.with(s.in(text), func(again *stmt) error {
		for _, d := range deliveries {
			if _, err := again.exec(d.Due.UnixMicro(), d.EventID, d.Destination, d.WaitsSince.UnixMicro()); err != nil {
				return err
			}
			if err := w.queue(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// create makes deliveries anew that are done.
func (s *Store) create(w *writer, deliveries []journal.Delivery) error {
	const text = `INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at, forced, resource, origin, waits_since)
		VALUES (?, ?, 'pending', ?, 0, ?, 1, nullif(?, ''), 2, ?)`
	return w.with(s.in(text), func(insert *stmt) error {
		for _, d := range deliveries {
			if _, err := insert.exec(d.EventID, d.Destination, d.Token, d.Due.UnixMicro(), d.Group, d.WaitsSince.UnixMicro()); err != nil {
				return err
			}
			if err := w.queue(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// audit begins a record.
func (s *Store) audit(w *writer, a journal.Audit) (journal.Audit, error) {
	const text = `INSERT INTO {{.}}audits (at, done_by, reason, action, filter, affected) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`
	err := w.with(s.in(text), func(insert *stmt) error {
		return insert.query(func(row []driver.Value) error { a.ID = row[0].(int64); return nil },
			a.At.UnixMicro(), a.By, a.Reason, string(a.Action), a.Filter, a.Count)
	})
	return a, err
}

// audits returns the records that a condition, with what follows it, chooses.
func (s *Store) audits(ctx context.Context, db reader, where string, args ...any) ([]journal.Audit, error) {
	text := s.in(`SELECT id, at, done_by, reason, action, filter, affected FROM {{.}}audits ` + where)
	return rows(ctx, db, text, args, func(row scanner) (a journal.Audit, err error) {
		var at int64
		err = row.Scan(&a.ID, &at, &a.By, &a.Reason, &a.Action, &a.Filter, &a.Count)
		a.At = time.UnixMicro(at)
		return a, err
	})
}

// RecordAudit implements [journal.Store].
func (s *Store) RecordAudit(ctx context.Context, a journal.Audit) error {
	return s.write(ctx, "recording what somebody did", func(w *writer) error {
		_, err := s.audit(w, a)
		return err
	})
}

// Audits implements [journal.Store].
func (s *Store) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	audits, err := s.audits(ctx, s.readers, `WHERE ?1 = 0 OR id < ?1 ORDER BY id DESC LIMIT ?2`, before, limit)
	return audits, failed("reading what operators did", err)
}

// SetPaused implements [journal.Store].
func (s *Store) SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error) {
	err = s.write(ctx, "pausing or resuming a destination", func(w *writer) error {
		if changed, err = s.setPaused(w, p, paused); err != nil || !changed {
			return err
		}
		_, err := s.audit(w, p.Record(paused))
		return err
	})
	return changed && err == nil, err
}

func (s *Store) setPaused(w *writer, p journal.Pause, paused bool) (changed bool, err error) {
	var n int64
	if paused {
		n, err = w.once(s.in(`INSERT INTO {{.}}pauses (destination, paused_at, paused_by, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`),
			p.Destination, p.At.UnixMicro(), p.By, p.Reason)
	} else {
		n, err = w.once(s.in(`DELETE FROM {{.}}pauses WHERE destination = ?`), p.Destination)
	}
	return n > 0, err
}

// Pauses implements [journal.Store].
func (s *Store) Pauses(ctx context.Context) ([]journal.Pause, error) {
	pauses, err := rows(ctx, s.readers, s.in(`SELECT destination, paused_at, paused_by, reason FROM {{.}}pauses ORDER BY destination`), nil,
		func(row scanner) (p journal.Pause, err error) {
			var at int64
			err = row.Scan(&p.Destination, &at, &p.By, &p.Reason)
			p.At = time.UnixMicro(at)
			return p, err
		})
	return pauses, failed("reading pauses", err)
}
