package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
)

var _ journal.Store = (*Store)(nil)

// summaryColumns are what [scanSummary] reads.
const summaryColumns = `e.id, e.source, coalesce(e.key, ''), e.event_type, e.received_at,
	coalesce(e.resource, ''), coalesce(e.rank, 0), coalesce(nullif(t.first, e.id), 0),
	EXISTS (SELECT 1 FROM {{.}}bodies b WHERE b.event_id = e.id), e.vouched, coalesce(e.unrouted, 0), coalesce(e.listed, 0)`

// scanner is a row.
type scanner interface{ Scan(to ...any) error }

func scanSummary(row scanner) (s journal.Summary, err error) {
	var received int64
	err = row.Scan(&s.ID, &s.Source, &s.Key, &s.Type, &received, &s.Resource, &s.Rank, &s.LogicalDuplicateOf, &s.HasBody, &s.Vouched, &s.Unrouted, &s.Listed)
	s.ReceivedAt = time.UnixMicro(received)
	return s, err
}

// reader is a transaction, or a connection in one, that a search reads from.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rows returns what scan makes of every row of a query, nil if there are none.
func rows[T any](ctx context.Context, db reader, query string, args []any, scan func(scanner) (T, error)) (all []T, err error) {
	r, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for r.Next() {
		one, err := scan(r)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, r.Err()
}

// read runs f in a transaction that sees one state of the file.
func (s *Store) read(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return failed(what, err)
	}
	defer tx.Rollback()
	return failed(what, f(tx))
}

// failed says of an error what failed. There being no such event is an answer.
func failed(what string, err error) error {
	if err == nil || errors.Is(err, journal.ErrNoEvent) {
		return err
	}
	return fmt.Errorf("journal/sqlite: %s: %w", what, err)
}

// in fills the prefix into a statement.
func (s *Store) in(text string) string { return strings.ReplaceAll(text, "{{.}}", s.prefix) }

// List implements [journal.Store].
func (s *Store) List(ctx context.Context, f journal.Filter, before int64, limit int) (page journal.Page, err error) {
	q := dialect.List(&f, before)
	err = s.read(ctx, "listing events", func(tx *sql.Tx) error {
		more, err := s.narrow(ctx, tx, q)
		if err != nil {
			return err
		}
		query, args := s.find(q, limit+1)
		found, err := rows(ctx, tx, query, args, scanSummary)
		if err != nil {
			return err
		}
		page = journal.NewPage(found, limit, more, q.First)
		for i := range page.Events {
			if page.Events[i].Deliveries, err = s.openDeliveries(ctx, tx, page.Events[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// Arrivals implements [journal.Store].
func (s *Store) Arrivals(ctx context.Context, first int64, limit int) ([]journal.Arrival, error) {
	const text = `SELECT id, source, event_type FROM {{.}}events WHERE id >= ? ORDER BY id LIMIT ?`
	all, err := rows(ctx, s.readers, s.in(text), []any{first, limit}, func(row scanner) (a journal.Arrival, err error) {
		return a, row.Scan(&a.ID, &a.Source, &a.Type)
	})
	return all, failed("looking for new events", err)
}

// Summaries implements [journal.Store].
func (s *Store) Summaries(ctx context.Context, ids []int64) (all []journal.Summary, err error) {
	err = s.read(ctx, "reading events", func(tx *sql.Tx) error {
		all, err = s.summaries(ctx, tx, s.in(`SELECT `+summaryColumns+` FROM {{.}}events e LEFT JOIN {{.}}twins t ON t.event_id = e.id
			WHERE e.id IN (`+numbers(ids)+`) ORDER BY e.id`))
		return err
	})
	return all, err
}

// summaries returns the events that a query chooses, with their open deliveries.
func (s *Store) summaries(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]journal.Summary, error) {
	all, err := rows(ctx, tx, query, args, scanSummary)
	for i := range all {
		if err == nil {
			all[i].Deliveries, err = s.openDeliveries(ctx, tx, all[i].ID)
		}
	}
	return all, err
}

// narrow cuts the range of a search down to what one call looks at, and reports whether there is more.
func (s *Store) narrow(ctx context.Context, db reader, q *search.Search) (more bool, err error) {
	found, err := rows(ctx, db, s.in(q.Bound()), q.Scope.Args, func(row scanner) (is [2]int64, err error) {
		return is, row.Scan(&is[0], &is[1])
	})
	if err != nil {
		return false, err
	}
	return q.Narrow(found[0][0], found[0][1]), nil
}

const openDeliveriesSQL = `SELECT event_id, destination, state, token, tries, due_at, last_error,
	CASE WHEN last_error = '' THEN '' ELSE error_kind END, status, forced, coalesce(resource, '')
	FROM {{.}}deliveries WHERE event_id = ? ORDER BY destination`

// openDeliveries returns the open deliveries of an event, by destination.
func (s *Store) openDeliveries(ctx context.Context, db reader, id int64) ([]journal.Delivery, error) {
	return rows(ctx, db, s.in(openDeliveriesSQL), []any{id}, func(row scanner) (d journal.Delivery, err error) {
		var due sql.NullInt64
		err = row.Scan(&d.EventID, &d.Destination, &d.State, &d.Token, &d.Tries, &due, &d.LastError, &d.Kind, &d.Status, &d.Forced, &d.Group)
		if due.Valid {
			d.Due = time.UnixMicro(due.Int64)
		}
		return d, err
	})
}

const finishedSQL = `SELECT event_id, destination, max(token), max(CASE WHEN outcome = 'done' THEN started_at + duration_us END)
	FROM {{.}}attempts WHERE event_id = ? GROUP BY destination HAVING max(outcome = 'done') ORDER BY destination`

// finished returns the deliveries of an event that are done, which its open ones are not.
func (s *Store) finished(ctx context.Context, db reader, id int64, open []journal.Delivery) ([]journal.Delivery, error) {
	done, err := rows(ctx, db, s.in(finishedSQL), []any{id}, func(row scanner) (journal.Delivery, error) {
		d := journal.Delivery{State: journal.Done}
		var ended int64
		err := row.Scan(&d.EventID, &d.Destination, &d.Token, &ended)
		d.Ended = time.UnixMicro(ended)
		return d, err
	})
	done = slices.DeleteFunc(done, func(d journal.Delivery) bool {
		return slices.ContainsFunc(open, func(o journal.Delivery) bool { return o.Destination == d.Destination })
	})
	if len(done) == 0 {
		return nil, err
	}
	return done, err
}

// Contents implements [journal.Store].
func (s *Store) Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error {
	r, err := s.readers.QueryContext(ctx, s.in(`SELECT event_id, header, body FROM {{.}}bodies WHERE event_id IN (`+numbers(ids)+`)`))
	if err != nil {
		return failed("reading bodies", err)
	}
	defer r.Close()
	for r.Next() {
		var id int64
		var header, body []byte
		if err := r.Scan(&id, &header, &body); err != nil {
			return failed("reading bodies", err)
		}
		if err := see(id, header, body); err != nil {
			return err
		}
	}
	return failed("reading bodies", r.Err())
}

// Find implements [journal.Store].
func (s *Store) Find(ctx context.Context, source, key string) (id int64, err error) {
	err = s.readers.QueryRowContext(ctx, s.in(`SELECT id FROM {{.}}events WHERE source = ? AND key = ?`), source, key).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = journal.ErrNoEvent
	}
	return id, failed("finding an event", err)
}

const findAnywhereSQL = sourcesSQL + `SELECT ` + summaryColumns + ` FROM s CROSS JOIN {{.}}events e ON e.source = s.source AND e.key = ?2
	LEFT JOIN {{.}}twins t ON t.event_id = e.id ORDER BY e.id DESC`

// FindAnywhere implements [journal.Store].
func (s *Store) FindAnywhere(ctx context.Context, key string) (all []journal.Summary, err error) {
	err = s.read(ctx, "finding events by their key", func(tx *sql.Tx) error {
		all, err = s.summaries(ctx, tx, s.in(findAnywhereSQL), math.MaxInt32, key)
		if err == nil && len(all) == 0 {
			err = journal.ErrNoEvent
		}
		return err
	})
	return all, err
}

// History implements [journal.Store].
func (s *Store) History(ctx context.Context, id int64) (*journal.History, error) {
	h := &journal.History{}
	err := s.read(ctx, "reading an event", func(tx *sql.Tx) error {
		found, err := rows(ctx, tx, s.in(`SELECT `+summaryColumns+` FROM {{.}}events e LEFT JOIN {{.}}twins t ON t.event_id = e.id WHERE e.id = ?`),
			[]any{id}, scanSummary)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return journal.ErrNoEvent
		}
		h.Summary = found[0]
		return s.details(ctx, tx, h)
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// details fills in what a list does not say.
func (s *Store) details(ctx context.Context, tx *sql.Tx, h *journal.History) (err error) {
	if h.Deliveries, err = s.openDeliveries(ctx, tx, h.ID); err != nil {
		return err
	}
	if h.Finished, err = s.finished(ctx, tx, h.ID, h.Deliveries); err != nil {
		return err
	}
	if h.Attempts, err = s.attempts(ctx, tx, h.ID); err != nil {
		return err
	}
	if h.Duplicates, err = s.duplicateReceipts(ctx, tx, h.ID); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, s.in(`SELECT coalesce((SELECT length(body) FROM {{.}}bodies WHERE event_id = ?), 0)`), h.ID).Scan(&h.Size)
}

const attemptsSQL = `SELECT destination, token, outcome, status, error, started_at, duration_us, answer, error_kind
	FROM {{.}}attempts WHERE event_id = ? ORDER BY started_at DESC, destination DESC, token DESC LIMIT ?`

func (s *Store) attempts(ctx context.Context, db reader, id int64) ([]journal.Attempt, error) {
	attempts, err := rows(ctx, db, s.in(attemptsSQL), []any{id, journal.MaxAttempts}, func(row scanner) (a journal.Attempt, err error) {
		var started, us int64
		err = row.Scan(&a.Destination, &a.Token, &a.State, &a.Status, &a.Error, &started, &us, &a.Excerpt, &a.Kind)
		a.Started, a.Duration = time.UnixMicro(started), time.Duration(us)*time.Microsecond
		return a, err
	})
	slices.Reverse(attempts)
	return attempts, err
}

// openByDestinationSQL reads the deliveries once, as counting them takes, and then two events of each destination and state.
const openByDestinationSQL = `SELECT destination, state, n, oldest, (SELECT e.received_at FROM {{.}}events e WHERE e.id = oldest),
		coalesce(accepted, 0), (SELECT e.received_at FROM {{.}}events e WHERE e.id = accepted), replayed
	FROM (SELECT destination, state, count(*) AS n, min(event_id) AS oldest,
			min(event_id) FILTER (WHERE waits_since IS NULL OR state = 'dead') AS accepted,
			min(waits_since) FILTER (WHERE state <> 'dead') AS replayed
		FROM {{.}}deliveries GROUP BY destination, state) o
	ORDER BY destination, state`

// Open implements [journal.Store].
func (s *Store) Open(ctx context.Context) ([]journal.OpenCount, error) {
	open, err := rows(ctx, s.readers, s.in(openByDestinationSQL), nil, func(row scanner) (c journal.OpenCount, err error) {
		var oldest, accepted int64
		var received, own, replayed sql.NullInt64
		err = row.Scan(&c.Destination, &c.State, &c.Count, &oldest, &received, &accepted, &own, &replayed)
		c.Oldest = journal.AcceptedAt(oldest, orZero(received))
		c.Since = journal.WaitsSince(accepted, orZero(own), orZero(replayed))
		return c, err
	})
	return open, failed("counting open work", err)
}
