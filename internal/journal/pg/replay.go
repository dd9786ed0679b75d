package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
)

// Replay implements [journal.Store]. Replays take turns: between finding that a delivery is done and
// making it anew nobody else can have made it, had it delivered, and so used up its next token. Nor does
// anybody purge meanwhile: what is done has no row that would keep its body from that.
//
// What is replayed with force may be done again before an operator who was told of an error says it again, and would be delivered
// a third time. So a forced one fails only where nothing is known; if it is lost with the primary, all of it was done before.
func (s *Store) Replay(ctx context.Context, r journal.Replay, limit int) (done journal.Replayed, err error) {
	if r.DryRun {
		return s.rehearse(ctx, r, limit)
	}
	change := s.change
	if r.Force {
		change = s.changeUnheard
	}
	err = change(ctx, "replaying", func(tx pgx.Tx) (err error) {
		if err := s.awaitPurge(ctx, tx); err != nil {
			return err
		}
		done, err = s.replay(ctx, tx, r, limit)
		return err
	})
	if err != nil {
		return journal.Replayed{}, err
	}
	return done, nil
}

// rehearse counts what a replay would do.
func (s *Store) rehearse(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	plan := &journal.Plan{}
	err := s.read(ctx, "counting what a replay would do", func(tx pgx.Tx) (err error) {
		plan, err = s.plan(ctx, tx, &r, limit, 0)
		return err
	})
	if err != nil {
		return journal.Replayed{}, err
	}
	return plan.Replayed, nil
}

// changeSQL waits until no other operator's transaction is under way. It has the commit wait for the standby also where nothing
// is left to change: what somebody says again is in the tables of the primary, and perhaps nowhere else.
const changeSQL = `WITH ` + durable + `, ` + replicated + ` SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) FROM replicated`

// change runs what an operator does, or [Store.RecordBypassed], in a durable transaction, when no other of these is under way. Its
// statements see everything that was committed before they began, whatever the server's default is. It fails where somebody
// cancelled its wait for the standby: it may be said again, and then waits for the standby anew.
func (s *Store) change(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return s.waits.Heed(func() error { return s.changeUnheard(ctx, what, f) })
}

// changeUnheard is change for what may not be said again.
func (s *Store) changeUnheard(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return s.retry(ctx, what, func() error {
		return s.durably(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, changeSQL, s.in("{{.}}audits")); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

// replay carries out a replay and keeps its record.
func (s *Store) replay(ctx context.Context, tx pgx.Tx, r journal.Replay, limit int) (journal.Replayed, error) {
	audit, err := r.Begun(func() ([]journal.Audit, error) { return s.audits(ctx, tx, `WHERE id = $1`, r.Audit) })
	if err != nil {
		return journal.Replayed{}, err
	}
	plan, err := s.plan(ctx, tx, &r, limit, int(audit.Count))
	if err != nil || plan.Idle(&r) {
		return plan.Replayed, err
	}
	if r.Audit == 0 {
		if audit, err = s.audit(ctx, tx, r.Record()); err != nil {
			return journal.Replayed{}, err
		}
	}
	redriven, err := s.redrive(ctx, tx, &r.Filter, plan.Redrive)
	if err != nil {
		return journal.Replayed{}, err
	}
	created, err := s.create(ctx, tx, plan.Create)
	if err != nil {
		return journal.Replayed{}, err
	}
	plan.Audit, plan.Deliveries = audit.ID, redriven+created
	plan.Forced = min(plan.Forced, created) // those that are made are all for the first time, or none is
	_, err = tx.Exec(ctx, s.in(`UPDATE {{.}}audits SET affected = affected + $2 WHERE id = $1`), audit.ID, plan.Deliveries)
	return plan.Replayed, err
}

// plan finds the next events that a replay looks at and decides what to do with them.
func (s *Store) plan(ctx context.Context, tx pgx.Tx, r *journal.Replay, limit, n int) (_ *journal.Plan, err error) {
	q := dialect.Replay(r)
	more := false
	if r.Only == nil {
		if more, err = s.narrow(ctx, tx, q); err != nil {
			return &journal.Plan{}, err
		}
	}
	found, err := s.candidates(ctx, tx, q, limit+1)
	if err != nil {
		return &journal.Plan{}, err
	}
	return r.Step(found, n, limit, more, q.End), nil
}

// candidates returns events with all their deliveries. The open ones are read first: what is not among
// them was finished before, and its attempts are there.
func (s *Store) candidates(ctx context.Context, tx pgx.Tx, q *search.Search, limit int) ([]journal.Candidate, error) {
	query, args := s.find(q, limit)
	events, err := rows(ctx, tx, query, args, scanSummary)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	open, err := s.openDeliveries(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	done, err := s.finished(ctx, tx, ids, open)
	if err != nil {
		return nil, err
	}
	found := make([]journal.Candidate, len(events))
	for i, e := range events {
		found[i] = journal.Candidate{ID: e.ID, Source: e.Source, Key: e.Key, Resource: e.Resource, HasBody: e.HasBody,
			Deliveries: append(open[e.ID], done[e.ID]...)}
	}
	return found, nil
}

// queuedSQL has the ordering groups of what has begun again looked at in time, and counts that.
const queuedSQL = `, queued AS (
	INSERT INTO {{.}}lanes (destination, resource, due_at)
	SELECT destination, resource, min(due_at) FROM begun
	WHERE resource IS NOT NULL GROUP BY destination, resource ORDER BY destination, resource
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = excluded.due_at
	WHERE lanes.event_id IS NULL AND lanes.due_at > excluded.due_at
)
SELECT count(*) FROM begun`

// replaySQL makes deliveries due that still are failed or dead, for an error that the filter narrows to, locking them in the
// order in which all statements do. What is asked of them is asked once they are locked: asked before, PostgreSQL would find
// them by the index of all that failed, and go through that for each piece of a replay.
const replaySQL = `WITH locked AS (
	SELECT d.event_id, d.destination, d.state, d.error_kind, d.status, r.due_at, r.waits_since
	FROM {{.}}deliveries d JOIN unnest($1::bigint[], $2::text[], $3::timestamptz[], $6::timestamptz[]) AS r (event_id, destination, due_at, waits_since)
		ON d.event_id = r.event_id AND d.destination = r.destination
	ORDER BY d.event_id, d.destination
	FOR UPDATE OF d
), begun AS (
	UPDATE {{.}}deliveries d SET state = 'pending', tries = 0, due_at = l.due_at, origin = 2,
		waits_since = CASE l.state WHEN 'dead' THEN l.waits_since ELSE d.waits_since END
	FROM locked l WHERE d.event_id = l.event_id AND d.destination = l.destination
		AND l.state IN ('failed', 'dead') AND ($4 = '' OR l.error_kind = $4) AND ($5::int = 0 OR l.status = $5)
	RETURNING d.destination, d.resource, d.due_at
)` + queuedSQL

func (s *Store) redrive(ctx context.Context, tx pgx.Tx, f *journal.Filter, deliveries []journal.Delivery) (n int, err error) {
	c := columnsOf(deliveries)
	err = tx.QueryRow(ctx, s.in(replaySQL), c.event, c.destination, c.due, string(f.Error), f.Status, c.waitsSince).Scan(&n)
	return n, err
}

// createSQL makes deliveries anew that are done.
const createSQL = `WITH begun AS (
	INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at, forced, resource, origin, waits_since)
	SELECT event_id, destination, 'pending', token, 0, due_at, true, nullif(resource, ''), 2, waits_since
	FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::timestamptz[])
		AS r (event_id, destination, due_at, token, resource, waits_since)
	ORDER BY event_id, destination
	ON CONFLICT DO NOTHING
	RETURNING destination, resource, due_at
)` + queuedSQL

func (s *Store) create(ctx context.Context, tx pgx.Tx, deliveries []journal.Delivery) (n int, err error) {
	c := columnsOf(deliveries)
	err = tx.QueryRow(ctx, s.in(createSQL), c.event, c.destination, c.due, c.token, c.resource, c.waitsSince).Scan(&n)
	return n, err
}

// deliveryColumns are deliveries, turned into the arrays that one statement takes.
type deliveryColumns struct {
	event, token          []int64
	destination, resource []string
	due, waitsSince       []time.Time
}

func columnsOf(deliveries []journal.Delivery) (c deliveryColumns) {
	for _, d := range deliveries {
		c.event, c.token = append(c.event, d.EventID), append(c.token, d.Token)
		c.destination, c.resource = append(c.destination, d.Destination), append(c.resource, d.Group)
		c.due, c.waitsSince = append(c.due, d.Due), append(c.waitsSince, d.WaitsSince)
	}
	return c
}

const auditSQL = `INSERT INTO {{.}}audits (at, done_by, reason, action, filter, affected)
	VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`

// audit begins a record.
func (s *Store) audit(ctx context.Context, tx pgx.Tx, a journal.Audit) (journal.Audit, error) {
	err := tx.QueryRow(ctx, s.in(auditSQL), a.At, a.By, a.Reason, string(a.Action), a.Filter, a.Count).Scan(&a.ID)
	return a, err
}

// audits returns the records that a condition, with what follows it, chooses.
func (s *Store) audits(ctx context.Context, db querier, where string, args ...any) ([]journal.Audit, error) {
	text := s.in(`SELECT id, at, done_by, reason, action, filter, affected FROM {{.}}audits ` + where)
	return rows(ctx, db, text, args, func(row pgx.CollectableRow) (a journal.Audit, err error) {
		err = row.Scan(&a.ID, &a.At, &a.By, &a.Reason, &a.Action, &a.Filter, &a.Count)
		return a, err
	})
}

// RecordAudit implements [journal.Store].
func (s *Store) RecordAudit(ctx context.Context, a journal.Audit) error {
	return s.change(ctx, "recording what somebody did", func(tx pgx.Tx) error {
		_, err := s.audit(ctx, tx, a)
		return err
	})
}

// Audits implements [journal.Store].
func (s *Store) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	audits, err := s.audits(ctx, s.pool, `WHERE $1 = 0 OR id < $1 ORDER BY id DESC LIMIT $2`, before, limit)
	return audits, failed("reading what operators did", err)
}

// SetPaused implements [journal.Store].
func (s *Store) SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error) {
	err = s.change(ctx, "pausing or resuming a destination", func(tx pgx.Tx) error {
		if changed, err = s.setPaused(ctx, tx, p, paused); err != nil || !changed {
			return err
		}
		_, err := s.audit(ctx, tx, p.Record(paused))
		return err
	})
	return changed && err == nil, err
}

func (s *Store) setPaused(ctx context.Context, tx pgx.Tx, p journal.Pause, paused bool) (changed bool, err error) {
	sql, args := `DELETE FROM {{.}}pauses WHERE destination = $1`, []any{p.Destination}
	if paused {
		sql = `INSERT INTO {{.}}pauses (destination, paused_at, paused_by, reason) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
		args = append(args, p.At, p.By, p.Reason)
	}
	tag, err := tx.Exec(ctx, s.in(sql), args...)
	return tag.RowsAffected() > 0, err
}

// Pauses implements [journal.Store].
func (s *Store) Pauses(ctx context.Context) ([]journal.Pause, error) {
	const text = `SELECT destination, paused_at, paused_by, reason FROM {{.}}pauses ORDER BY destination`
	pauses, err := rows(ctx, s.pool, s.in(text), nil, func(row pgx.CollectableRow) (p journal.Pause, err error) {
		err = row.Scan(&p.Destination, &p.At, &p.By, &p.Reason)
		return p, err
	})
	return pauses, failed("reading pauses", err)
}
