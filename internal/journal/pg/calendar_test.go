package pg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

const day = 24 * time.Hour

// noon is when these tests begin. The server's own clock does not matter.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// calendar is a store with partitions on a clock of its own.
type calendar struct {
	*testing.T
	dsn   string
	store *pg.Store
	conn  *pgx.Conn
	now   time.Time
	keep  journal.Retention
	ids   *journal.IDs
}

func newCalendar(t *testing.T) *calendar {
	t.Helper()
	dsn := pgtest.DSN(t)
	c := &calendar{T: t, dsn: dsn, store: open(t, dsn, ""), now: noon, ids: journal.NewIDs(7, 0),
		keep: journal.Retention{Period: journal.Period{IDs: 90 * day, Bodies: 7 * day, Attempts: 7 * day, Answers: 7 * day}}}
	c.conn = c.connect()
	return c
}

func (c *calendar) connect() *pgx.Conn {
	c.Helper()
	conn, err := pgx.Connect(c.Context(), c.dsn)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (c *calendar) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.conn.Exec(c.Context(), sql, args...); err != nil {
		c.Fatal(err)
	}
}

// count returns the only value of a query.
func (c *calendar) count(sql string, args ...any) (n int) {
	c.Helper()
	if err := c.conn.QueryRow(c.Context(), sql, args...).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

func (c *calendar) ensurePartitions() map[journal.Kind]journal.Division {
	c.Helper()
	d, err := c.store.EnsurePartitions(c.Context(), c.now, &c.keep)
	if err != nil {
		c.Fatal(err)
	}
	return d
}

// drop drops until there is nothing more to do, and returns in how many calls.
func (c *calendar) drop() (calls int) {
	c.Helper()
	for calls = 1; calls < 100; calls++ {
		d, err := c.store.DropPartitions(c.Context(), c.now, &c.keep)
		if err != nil {
			c.Fatal(err)
		}
		if !d.More {
			return calls
		}
	}
	c.Fatal("there is no end of dropping")
	return calls
}

// partitions returns the names of the partitions of a table, the default apart.
func (c *calendar) partitions(table string) []string {
	c.Helper()
	rows, err := c.conn.Query(c.Context(), `SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
		WHERE inhparent = to_regclass('hookonce.' || $1) AND relname NOT LIKE '%_default' ORDER BY relname`, table)
	if err != nil {
		c.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.Fatal(err)
	}
	return names
}

func (c *calendar) wantPartitions(table string, want ...string) {
	c.Helper()
	if diff := cmp.Diff(want, c.partitions(table)); diff != "" {
		c.Errorf("partitions of %s (-want +got):\n%s", table, diff)
	}
}

// in returns the table that a row of an event is in.
func (c *calendar) in(table string, id int64) (name string) {
	c.Helper()
	err := c.conn.QueryRow(c.Context(), fmt.Sprintf(`SELECT coalesce(string_agg(DISTINCT tableoid::regclass::text, ' '), '') FROM
		(SELECT tableoid, event_id FROM hookonce.%[1]s UNION ALL SELECT tableoid, event_id FROM hookonce.kept_%[1]s) t WHERE event_id = $1`, table), id).Scan(&name)
	if err != nil {
		c.Fatal(err)
	}
	return strings.ReplaceAll(name, "hookonce.", "")
}

// accepts stores an event of a source.
func (c *calendar) accepts(source, key string) *journal.Record {
	c.Helper()
	e := entry(key)
	e.ID, e.Source, e.Hold, e.ReceivedAt = c.ids.Next(c.now), source, nil, c.now
	results, err := c.store.Accept(c.Context(), []*journal.Record{e}, c.now, c.now.Add(time.Minute))
	if err != nil || results[0].Err != nil || results[0].Status != journal.Accepted {
		c.Fatalf("accepting: %+v, %v", results, err)
	}
	return e
}

// takes leases what is due, by key.
func (c *calendar) takes() map[string]*journal.Work {
	c.Helper()
	work, err := c.store.Take(c.Context(), c.now, c.now.Add(time.Minute), journal.Wanted{Deliveries: 100})
	if err != nil {
		c.Fatal(err)
	}
	byKey := map[string]*journal.Work{}
	for _, w := range work {
		byKey[w.Key] = w
		if len(w.Body) != 2048 {
			c.Errorf("%s comes with %d bytes of its body", w.Key, len(w.Body))
		}
	}
	return byKey
}

// ends records an outcome of each piece of work.
func (c *calendar) ends(state journal.State, work ...*journal.Work) {
	c.Helper()
	for _, w := range work {
		o := journal.Outcome{Held: w.Held, State: state, Status: 200, Started: c.now, Due: c.now.Add(time.Hour)}
		if applied, err := c.store.Finish(c.Context(), []journal.Outcome{o}); err != nil || !applied[0] {
			c.Fatal(applied, err)
		}
	}
}

// done stores events and finishes them.
func (c *calendar) done(source string, keys ...string) (last *journal.Record) {
	c.Helper()
	for _, key := range keys {
		last = c.accepts(source, key)
		c.ends(journal.Done, c.takes()[key])
	}
	return last
}

func (c *calendar) purge(kind journal.Kind, before time.Time) int {
	c.Helper()
	purged, err := c.store.Purge(c.Context(), journal.Purge{Kind: kind, Before: before, Others: true, Limit: 100})
	if err != nil {
		c.Fatal(err)
	}
	return purged.Deleted
}
