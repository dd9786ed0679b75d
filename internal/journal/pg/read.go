package pg

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
)

var _ journal.Store = (*Store)(nil)

// summaryColumns are what [scanSummary] reads.
const summaryColumns = `e.id, e.source, coalesce(e.key, ''), e.event_type, e.received_at,
	coalesce(e.resource, ''), coalesce(e.rank, 0), coalesce(nullif(t.first, e.id), 0),
	b.event_id IS NOT NULL, e.vouched,
	coalesce(e.unrouted, false), coalesce(e.listed, false)`

// summaryJoins are what they are taken from, besides events. Whether there is a body is looked for one by one, see
// [bodyOfDue]: EXISTS may be carried out by reading which events have one.
const summaryJoins = `LEFT JOIN {{.}}twins t ON t.event_id = e.id LEFT JOIN LATERAL (
		SELECT event_id FROM {{.}}bodies WHERE event_id = e.id UNION ALL SELECT event_id FROM {{.}}kept_bodies WHERE event_id = e.id
	) b ON true`

func scanSummary(row pgx.CollectableRow) (s journal.Summary, err error) {
	err = row.Scan(&s.ID, &s.Source, &s.Key, &s.Type, &s.ReceivedAt, &s.Resource, &s.Rank, &s.LogicalDuplicateOf, &s.HasBody, &s.Vouched, &s.Unrouted, &s.Listed)
	return s, err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// rows returns what scan makes of every row of a query, nil if there are none.
func rows[T any](ctx context.Context, db querier, query string, args []any, scan pgx.RowToFunc[T]) (all []T, err error) {
	r, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows(all, r, scan)
}

// each reads every row of a query into what to points at, and calls do.
func each(ctx context.Context, db querier, query string, args, to []any, do func() error) error {
	r, err := db.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(r, to, do)
	return err
}

// read runs f in a transaction that sees one state of the database and writes nothing.
func (s *Store) read(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return failed(what, pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f))
}

// in fills the schema into a statement.
func (s *Store) in(text string) string { return strings.ReplaceAll(text, "{{.}}", s.prefix) }

// List implements [journal.Store].
func (s *Store) List(ctx context.Context, f journal.Filter, before int64, limit int) (page journal.Page, err error) {
	q := dialect.List(&f, before)
	err = s.read(ctx, "listing events", func(tx pgx.Tx) error {
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
		return s.addDeliveries(ctx, tx, page.Events)
	})
	return page, err
}

// Arrivals implements [journal.Store].
func (s *Store) Arrivals(ctx context.Context, first int64, limit int) ([]journal.Arrival, error) {
	const text = `SELECT id, source, event_type FROM {{.}}events WHERE id >= $1 ORDER BY id LIMIT $2`
	all, err := rows(ctx, s.pool, s.in(text), []any{first, limit}, func(row pgx.CollectableRow) (a journal.Arrival, err error) {
		return a, row.Scan(&a.ID, &a.Source, &a.Type)
	})
	return all, failed("looking for new events", err)
}

// Summaries implements [journal.Store].
func (s *Store) Summaries(ctx context.Context, ids []int64) (all []journal.Summary, err error) {
	err = s.read(ctx, "reading events", func(tx pgx.Tx) error {
		all, err = rows(ctx, tx, s.in(`SELECT `+summaryColumns+` FROM {{.}}events e `+summaryJoins+` WHERE e.id = ANY ($1::bigint[]) ORDER BY e.id`), []any{ids}, scanSummary)
		if err != nil {
			return err
		}
		return s.addDeliveries(ctx, tx, all)
	})
	return all, err
}

// narrow cuts the range of a search down to what one call looks at, and reports whether there is more.
func (s *Store) narrow(ctx context.Context, tx pgx.Tx, q *search.Search) (more bool, err error) {
	var n, last int64
	if err := tx.QueryRow(ctx, s.in(q.Bound()), q.Scope.Args...).Scan(&n, &last); err != nil {
		return false, err
	}
	return q.Narrow(n, last), nil
}

// addDeliveries gives events, newest first, their open deliveries.
func (s *Store) addDeliveries(ctx context.Context, tx pgx.Tx, events []journal.Summary) error {
	ids := make([]int64, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	open, err := s.openDeliveries(ctx, tx, ids)
	for i := range events {
		events[i].Deliveries = open[events[i].ID]
	}
	return err
}

const openDeliveriesSQL = `SELECT event_id, destination, state, token, tries, due_at, last_error,
	CASE WHEN last_error = '' THEN '' ELSE error_kind END, status, forced, coalesce(resource, '')
	FROM {{.}}deliveries WHERE event_id = ANY ($1::bigint[]) ORDER BY event_id, destination`

// openDeliveries returns the open deliveries of events, by event.
func (s *Store) openDeliveries(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64][]journal.Delivery, error) {
	open := map[int64][]journal.Delivery{}
	var d journal.Delivery
	var due *time.Time
	to := []any{&d.EventID, &d.Destination, &d.State, &d.Token, &d.Tries, &due, &d.LastError, &d.Kind, &d.Status, &d.Forced, &d.Group}
	err := each(ctx, tx, s.in(openDeliveriesSQL), []any{ids}, to, func() error {
		d.Due = time.Time{}
		if due != nil {
			d.Due = *due
		}
		open[d.EventID] = append(open[d.EventID], d)
		return nil
	})
	return open, err
}

// allAttempts are the attempts, wherever they are.
const allAttempts = `(SELECT * FROM {{.}}attempts UNION ALL SELECT * FROM {{.}}kept_attempts) a`

const finishedSQL = `SELECT event_id, destination, max(token), max(started_at + duration_us * interval '1 microsecond') FILTER (WHERE outcome = 'done')
	FROM ` + allAttempts + ` WHERE event_id = ANY ($1::bigint[])
	GROUP BY event_id, destination HAVING bool_or(outcome = 'done') ORDER BY event_id, destination`

// finished adds to the open deliveries of events those that are done.
func (s *Store) finished(ctx context.Context, tx pgx.Tx, ids []int64, open map[int64][]journal.Delivery) (map[int64][]journal.Delivery, error) {
	done := map[int64][]journal.Delivery{}
	d := journal.Delivery{State: journal.Done}
	err := each(ctx, tx, s.in(finishedSQL), []any{ids}, []any{&d.EventID, &d.Destination, &d.Token, &d.Ended}, func() error {
		isOpen := slices.ContainsFunc(open[d.EventID], func(o journal.Delivery) bool { return o.Destination == d.Destination })
		if !isOpen {
			done[d.EventID] = append(done[d.EventID], d)
		}
		return nil
	})
	return done, err
}

// contentsSQL looks for each body by itself, see [bodyOfDue]: an inner join might be carried out by reading all of them.
const contentsSQL = `SELECT due.event_id, b.header, b.body FROM unnest($1::bigint[]) AS due (event_id) ` + bodyOfDue

// Contents implements [journal.Store].
func (s *Store) Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error {
	r, err := s.pool.Query(ctx, s.in(contentsSQL), ids)
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
		if header == nil { // it has no body any more
			continue
		}
		if err := see(id, header, body); err != nil {
			return err
		}
	}
	return failed("reading bodies", r.Err())
}

const findSQL = `SELECT id FROM {{.}}events WHERE source = $1 AND key = $2`

// Find implements [journal.Store].
func (s *Store) Find(ctx context.Context, source, key string) (id int64, err error) {
	err = s.pool.QueryRow(ctx, s.in(findSQL), source, key).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = journal.ErrNoEvent
	}
	return id, failed("finding an event", err)
}

const findAnywhereSQL = sourcesSQL + `SELECT ` + summaryColumns + ` FROM s CROSS JOIN LATERAL (
	SELECT * FROM {{.}}events WHERE source = s.source AND key = $2 LIMIT 1) e ` + summaryJoins + ` ORDER BY e.id DESC`

// FindAnywhere implements [journal.Store].
func (s *Store) FindAnywhere(ctx context.Context, key string) (all []journal.Summary, err error) {
	err = s.read(ctx, "finding events by their key", func(tx pgx.Tx) error {
		all, err = rows(ctx, tx, s.in(findAnywhereSQL), []any{math.MaxInt32, key}, scanSummary)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return journal.ErrNoEvent
		}
		return s.addDeliveries(ctx, tx, all)
	})
	return all, err
}

// History implements [journal.Store].
func (s *Store) History(ctx context.Context, id int64) (*journal.History, error) {
	h := &journal.History{}
	err := s.read(ctx, "reading an event", func(tx pgx.Tx) error {
		found, err := rows(ctx, tx, s.in(`SELECT `+summaryColumns+` FROM {{.}}events e `+summaryJoins+` WHERE e.id = $1`), []any{id}, scanSummary)
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
func (s *Store) details(ctx context.Context, tx pgx.Tx, h *journal.History) error {
	open, err := s.openDeliveries(ctx, tx, []int64{h.ID})
	if err != nil {
		return err
	}
	done, err := s.finished(ctx, tx, []int64{h.ID}, open)
	if err != nil {
		return err
	}
	h.Deliveries, h.Finished = open[h.ID], done[h.ID]
	if h.Attempts, err = s.attempts(ctx, tx, h.ID); err != nil {
		return err
	}
	if h.Duplicates, err = s.duplicateReceipts(ctx, tx, h.ID); err != nil {
		return err
	}
	return tx.QueryRow(ctx, s.in(sizeSQL), h.ID).Scan(&h.Size)
}

const sizeSQL = `SELECT coalesce((SELECT octet_length(body) FROM {{.}}bodies WHERE event_id = $1),
	(SELECT octet_length(body) FROM {{.}}kept_bodies WHERE event_id = $1), 0)`

const attemptsSQL = `SELECT destination, token, outcome, status, error, started_at, duration_us, answer, error_kind
	FROM ` + allAttempts + ` WHERE event_id = $1 ORDER BY started_at DESC, destination DESC, token DESC LIMIT $2`

func (s *Store) attempts(ctx context.Context, tx pgx.Tx, id int64) ([]journal.Attempt, error) {
	attempts, err := rows(ctx, tx, s.in(attemptsSQL), []any{id, journal.MaxAttempts}, func(row pgx.CollectableRow) (a journal.Attempt, err error) {
		var us int64
		err = row.Scan(&a.Destination, &a.Token, &a.State, &a.Status, &a.Error, &a.Started, &us, &a.Excerpt, &a.Kind)
		a.Duration = time.Duration(us) * time.Microsecond
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
	open, err := rows(ctx, s.pool, s.in(openByDestinationSQL), nil, func(row pgx.CollectableRow) (c journal.OpenCount, err error) {
		var oldest, accepted int64
		var received, own, replayed *time.Time
		err = row.Scan(&c.Destination, &c.State, &c.Count, &oldest, &received, &accepted, &own, &replayed)
		c.Oldest = journal.AcceptedAt(oldest, orZero(received))
		c.Since = journal.WaitsSince(accepted, orZero(own), orZero(replayed))
		return c, err
	})
	return open, failed("counting open work", err)
}
