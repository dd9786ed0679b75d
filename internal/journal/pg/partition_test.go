package pg_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/pgtest"
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

func (c *calendar) provide() map[journal.Kind]journal.Division {
	c.Helper()
	d, err := c.store.Provide(c.Context(), c.now, &c.keep)
	if err != nil {
		c.Fatal(err)
	}
	return d
}

// drop drops until there is nothing more to do, and returns in how many calls.
func (c *calendar) drop() (calls int) {
	c.Helper()
	for calls = 1; calls < 100; calls++ {
		d, err := c.store.Drop(c.Context(), c.now, &c.keep)
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
func (c *calendar) accepts(source, key string) *journal.Entry {
	c.Helper()
	e := entry(key)
	e.ID, e.Source, e.Hold, e.ReceivedAt = c.ids.Next(c.now), source, nil, c.now
	results, err := c.store.Accept(c.Context(), []*journal.Entry{e}, c.now, c.now.Add(time.Minute))
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
func (c *calendar) done(source string, keys ...string) (last *journal.Entry) {
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

// Partitions are made ahead, made like the default one, and take what comes.
func TestPartitionsAreMadeAhead(t *testing.T) {
	c := newCalendar(t)
	c.keep.Attempts = 90 * day
	d := c.provide()
	c.wantPartitions("bodies", "bodies_20260314", "bodies_20260315", "bodies_20260316", "bodies_20260317")
	if got := d[journal.KindBodies]; got.Partitions != 4 || !got.From.Equal(noon.Truncate(day)) || !got.Until.Equal(noon.Truncate(day).Add(4*day)) {
		t.Errorf("said to be %+v", got)
	}
	if got := d[journal.KindAttempts]; got.Partitions != 4 || got.Until.Sub(got.From) != 12*day {
		t.Errorf("attempts, kept for 90 days: %+v", got)
	}
	options := c.count(`SELECT count(*) FROM pg_class WHERE relname LIKE 'bodies_2026%' AND relkind = 'r' AND reloptions = '{toast_tuple_target=8160}'`)
	keys := c.count(`SELECT count(*) FROM pg_index JOIN pg_class ON oid = indrelid WHERE relname LIKE 'bodies_2026%' AND indisprimary`)
	if options != 4 || keys != 4 {
		t.Errorf("%d partitions have the storage parameter, %d a primary key", options, keys)
	}
	e := c.done("billing", "evt_1")
	if b, a := c.in("bodies", e.ID), c.in("attempts", e.ID); b != "bodies_20260314" || !strings.HasPrefix(a, "attempts_2026") {
		t.Errorf("the body is in %s, the attempt in %s", b, a)
	}
	c.now = c.now.Add(2 * day)
	c.provide()
	c.provide()
	if got := c.partitions("bodies"); len(got) != 6 || got[5] != "bodies_20260319" {
		t.Errorf("two days later: %v", got)
	}
}

// What no partition is for is stored all the same, and partitions are made around it.
func TestClockJumps(t *testing.T) {
	c := newCalendar(t)
	before := c.done("billing", "before") // before there are any
	c.provide()
	c.wantPartitions("bodies", "bodies_20260315", "bodies_20260316", "bodies_20260317")
	c.now = noon.Add(10 * day) // a clock that is wrong
	ahead := c.done("billing", "ahead")
	c.now, c.ids = noon.Add(-1000*day), journal.NewIDs(7, 0)
	behind := c.done("billing", "behind")
	for _, e := range []*journal.Entry{before, ahead, behind} {
		if in := c.in("bodies", e.ID); in != "bodies_default" {
			t.Errorf("%s is in %s", e.Key, in)
		}
	}
	c.now = noon.Add(9 * day)
	c.provide()
	if got := c.partitions("bodies"); slices.Contains(got, "bodies_20260324") || !slices.Contains(got, "bodies_20260323") || !slices.Contains(got, "bodies_20260325") {
		t.Errorf("around a row of 24 March: %v", got)
	}
	if n := c.purge(journal.KindBodies, noon.Add(-500*day)); n != 1 {
		t.Errorf("%d old rows of the default partition were purged", n)
	}
	c.drop()
	if n := c.purge(journal.KindBodies, noon.Add(3*day)); n != 1 { // before
		t.Errorf("%d rows of the default partition were purged", n)
	}
	c.now = noon.Add(20 * day)
	c.drop()
	if n := c.purge(journal.KindBodies, noon.Add(13*day)); n != 1 || c.count(`SELECT count(*) FROM hookonce.bodies`) != 0 {
		t.Errorf("%d rows of the default partition were purged", n)
	}
}

// Ids outlive what is dropped; a partition goes when the youngest that can be in it is past its period.
func TestPartitionsAreDropped(t *testing.T) {
	c := newCalendar(t)
	c.provide()
	e := c.done("billing", "evt_1", "evt_2", "evt_3")
	c.now = noon.Truncate(day).Add(8*day - time.Millisecond)
	if calls := c.drop(); calls != 1 || len(c.partitions("bodies")) != 4 {
		t.Errorf("a partition was dropped too soon: %v", c.partitions("bodies"))
	}
	if n := c.purge(journal.KindBodies, c.now.Add(-7*day)); n != 0 {
		t.Errorf("%d rows were deleted one by one that go with their partition", n)
	}
	c.now = c.now.Add(time.Millisecond)
	c.exec(`ANALYZE hookonce.bodies`)
	d, err := c.store.Drop(t.Context(), c.now, &c.keep)
	if err != nil || !d.More || d.Rows[journal.KindBodies] != 3 {
		t.Errorf("Drop = %+v, %v", d, err)
	}
	c.drop()
	c.wantPartitions("bodies", "bodies_20260315", "bodies_20260316", "bodies_20260317")
	c.wantPartitions("attempts", "attempts_20260315", "attempts_20260316", "attempts_20260317")
	h, err := c.store.History(t.Context(), e.ID)
	if err != nil || h.HasBody || len(h.Attempts) != 0 {
		t.Errorf("History = %+v, %v", h, err)
	}
	c.keep.Bodies, c.keep.Attempts = 0, 0
	c.now = c.now.Add(1000 * day)
	if c.drop(); len(c.partitions("bodies")) != 3 {
		t.Error("what is kept for ever was dropped")
	}
}

// What is open, and what belongs to a source with a longer period, outlives its partition, can be delivered, and
// goes when its own time has come.
func TestNeededRowsOutliveTheirPartition(t *testing.T) {
	c := newCalendar(t)
	c.provide()
	long := c.keep.Period
	long.Bodies, long.Attempts = 30*day, 30*day
	c.keep.Sources = map[string]journal.Period{"ledger": long, "other": c.keep.Period}
	gone := []*journal.Entry{c.done("billing", "done"), c.done("other", "others")}
	kept := []*journal.Entry{c.done("ledger", "ledger")}
	for _, state := range []journal.State{journal.Dead, journal.Failed} {
		kept = append(kept, c.accepts("billing", string(state)))
		c.ends(state, c.takes()[string(state)])
	}
	kept = append(kept, c.accepts("billing", "processing"))
	c.takes()
	kept = append(kept, c.accepts("billing", "pending"))
	c.now = noon.Add(8 * day)
	if calls := c.drop(); calls != 3 {
		t.Errorf("it took %d calls; want one to put aside, one to drop, and one that finds nothing", calls)
	}
	if slices.Contains(c.partitions("bodies"), "bodies_20260314") || slices.Contains(c.partitions("attempts"), "attempts_20260314") {
		t.Error("the partition is still there")
	}
	for _, e := range kept {
		h, err := c.store.History(t.Context(), e.ID)
		if err != nil || !h.HasBody || h.Size != 2048 || c.in("bodies", e.ID) != "kept_bodies" {
			t.Errorf("%s: %+v, %v", e.Key, h, err)
		}
		attempted := e.Key == "ledger" || e.Key == "dead" || e.Key == "failed"
		if (len(h.Attempts) == 1) != attempted {
			t.Errorf("%s has %d attempts", e.Key, len(h.Attempts))
		}
	}
	for _, e := range gone {
		if h, err := c.store.History(t.Context(), e.ID); err != nil || h.HasBody || len(h.Attempts) > 0 {
			t.Errorf("%s: %+v, %v", e.Key, h, err)
		}
	}
	list, err := c.store.List(t.Context(), journal.Filter{Destination: "app", State: journal.Done}, 0, 10)
	if err != nil || len(list.Events) != 1 || list.Events[0].Key != "ledger" {
		t.Errorf("known to be done at its destination: %+v, %v", list.Events, err)
	}
	replayed, err := c.store.Replay(t.Context(), journal.Replay{Force: true, Start: c.now, By: "ada", Reason: "x"}, 100)
	if err != nil || replayed.Deliveries != 3 || replayed.Forced != 1 { // dead, failed, ledger
		t.Fatalf("Replay = %+v, %v", replayed, err)
	}
	work := c.takes()
	if got := slices.Sorted(maps.Keys(work)); !slices.Equal(got, []string{"dead", "failed", "ledger", "pending", "processing"}) {
		t.Errorf("took %v", got)
	}
	c.ends(journal.Done, slices.Collect(maps.Values(work))...)
	rest := journal.Purge{Kind: journal.KindBodies, Before: c.now.Add(-7 * day), Sources: []string{"ledger"}, Others: true, Limit: 100}
	if purged, err := c.store.Purge(t.Context(), rest); err != nil || purged.Deleted != 4 {
		t.Errorf("Purge of what was kept = %+v, %v", purged, err)
	}
	if n := c.count(`SELECT count(*) FROM hookonce.kept_bodies`); n != 1 {
		t.Errorf("%d bodies are kept", n)
	}
}

// A source with a shorter period does not wait for the partition.
func TestShorterPeriodsInPartitions(t *testing.T) {
	c := newCalendar(t)
	c.provide()
	short, usual := c.done("short", "a"), c.done("billing", "b")
	c.now = noon.Add(2 * day)
	p := journal.Purge{Kind: journal.KindBodies, Before: c.now.Add(-day), Sources: []string{"short"}, Limit: 10}
	if purged, err := c.store.Purge(t.Context(), p); err != nil || purged.Deleted != 1 {
		t.Errorf("Purge = %+v, %v", purged, err)
	}
	if c.in("bodies", short.ID) != "" || c.in("bodies", usual.ID) != "bodies_20260314" || c.in("attempts", short.ID) == "" {
		t.Error("the wrong rows went")
	}
}

// Several processes do it at once, and all go well.
func TestProcessesShareUpkeep(t *testing.T) {
	c := newCalendar(t)
	stores := []*pg.Store{c.store, open(t, c.dsn, ""), open(t, c.dsn, "")}
	together := func(f func(s *pg.Store) error) {
		var all sync.WaitGroup
		for _, s := range stores {
			all.Go(func() {
				if err := f(s); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	for range 3 {
		together(func(s *pg.Store) error {
			_, err := s.Provide(context.WithoutCancel(t.Context()), c.now, &c.keep)
			return err
		})
		c.provide() // what was in somebody's way
		if got := c.partitions("bodies"); len(got) != 4 {
			t.Fatalf("partitions: %v", got)
		}
		dead := c.accepts("billing", c.now.String())
		c.ends(journal.Dead, c.takes()[dead.Key])
		c.now = c.now.Add(20 * day)
		together(func(s *pg.Store) error {
			_, err := s.Drop(context.WithoutCancel(t.Context()), c.now, &c.keep)
			return err
		})
		c.drop()
		if got := c.partitions("bodies"); len(got) != 0 || c.in("bodies", dead.ID) != "kept_bodies" {
			t.Errorf("partitions: %v; the body is in %s", got, c.in("bodies", dead.ID))
		}
	}
}

// A process that dies between putting aside and dropping leaves everything where it is found, and another one goes on.
func TestDyingBeforeTheDrop(t *testing.T) {
	c := newCalendar(t)
	c.provide()
	dead := c.accepts("billing", "dead")
	c.ends(journal.Dead, c.takes()["dead"])
	done := c.done("billing", "done")
	c.now = noon.Add(8 * day)
	if d, err := c.store.Drop(t.Context(), c.now, &c.keep); err != nil || !d.More || len(d.Rows) != 0 {
		t.Fatalf("the first call: %+v, %v", d, err)
	}
	c.store.Close()
	c.store = open(t, c.dsn, "")
	if c.in("bodies", dead.ID) != "kept_bodies" || c.in("bodies", done.ID) != "bodies_20260314" {
		t.Fatal("this tests nothing")
	}
	for _, e := range []*journal.Entry{dead, done} {
		if h, err := c.store.History(t.Context(), e.ID); err != nil || !h.HasBody || h.Size != 2048 || len(h.Attempts) != 1 {
			t.Errorf("%s: %+v, %v", e.Key, h, err)
		}
	}
	if calls := c.drop(); calls != 2 || slices.Contains(c.partitions("bodies"), "bodies_20260314") {
		t.Errorf("after %d calls there are %v", calls, c.partitions("bodies"))
	}
}

// Somebody reads, or stores, what a drop has to lock: the drop gives up, and whoever comes after it does not
// wait for the one that it waits for.
func TestDropGivesUp(t *testing.T) {
	for name, sql := range map[string]string{
		"a long read":    `SELECT count(*) FROM hookonce.bodies, hookonce.attempts`,
		"a long write":   `INSERT INTO hookonce.bodies SELECT 1, '', ''`,
		"a replay":       `SELECT pg_advisory_xact_lock(hashtextextended('"hookonce".bodies', 0))`,
		"a late event":   fmt.Sprintf(`INSERT INTO hookonce.bodies SELECT %d, '', ''`, journal.FirstID(noon)+1),
		"the vacuum":     `LOCK TABLE hookonce.bodies_20260314, hookonce.attempts_20260314 IN SHARE UPDATE EXCLUSIVE MODE`,
		"another vacuum": `LOCK TABLE hookonce.bodies_default, hookonce.attempts_default IN SHARE UPDATE EXCLUSIVE MODE`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCalendar(t)
			c.provide()
			c.done("billing", "evt_1")
			c.now = noon.Add(8 * day)
			tx, err := c.connect().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			d, err := c.store.Drop(t.Context(), c.now, &c.keep)
			if err != nil || d.Rows[journal.KindBodies] != 0 || len(c.partitions("bodies")) != 4 {
				t.Errorf("%+v, %v, and there are %v", d, err, c.partitions("bodies"))
			}
			c.done("billing", "evt_2")
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.drop()
			c.wantPartitions("bodies", "bodies_20260315", "bodies_20260316", "bodies_20260317")
		})
	}
}

// A replay that comes while a partition is dropped waits for it, and finds that the bodies are gone. One that was
// first is seen, and what it needs is put aside.
func TestReplayAndDropTakeTurns(t *testing.T) {
	force := func(c *calendar) journal.Replay {
		return journal.Replay{Force: true, Start: c.now, By: "ada", Reason: "x"}
	}
	t.Run("the drop is first", func(t *testing.T) {
		c := newCalendar(t)
		c.provide()
		c.done("billing", "evt_1")
		c.now = noon.Add(8 * day)
		tx, err := c.connect().Begin(t.Context()) // what a drop does
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{`SELECT pg_advisory_xact_lock(hashtextextended('"hookonce".bodies', 0))`, `DROP TABLE hookonce.bodies_20260314`} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan replayed, 1)
		go func() {
			done, err := c.store.Replay(context.WithoutCancel(t.Context()), force(c), 10)
			ended <- replayed{done, err}
		}()
		waits := &crossing{T: t, conn: c.conn}
		waits.awaitWaiting(1)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got.err != nil || got.Deliveries != 0 || len(got.Gone) != 1 {
			t.Errorf("Replay = %+v", got)
		}
	})
	t.Run("the replay is first", func(t *testing.T) {
		c := newCalendar(t)
		c.provide()
		c.done("billing", "evt_1")
		c.now = noon.Add(8 * day)
		if got, err := c.store.Replay(t.Context(), force(c), 10); err != nil || got.Deliveries != 1 {
			t.Fatalf("Replay = %+v, %v", got, err)
		}
		c.drop()
		if work := c.takes(); len(work) != 1 || slices.Contains(c.partitions("bodies"), "bodies_20260314") {
			t.Errorf("took %v; there are %v", work, c.partitions("bodies"))
		}
	})
}

// What operators are told to do about a large default partition saves the server the look through it.
func TestDefaultPartitionIsNotReadWithoutNeed(t *testing.T) {
	c := newCalendar(t)
	c.done("billing", "evt_1")
	tomorrow := journal.FirstID(noon.Truncate(day).Add(day))
	c.exec(fmt.Sprintf(`ALTER TABLE hookonce.bodies_default ADD CONSTRAINT later CHECK (event_id < %d) NOT VALID`, tomorrow))
	c.exec(`ALTER TABLE hookonce.bodies_default VALIDATE CONSTRAINT later`)
	cfg, err := pgx.ParseConfig(c.dsn)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = append(said, n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{`SET client_min_messages = debug1`, `CREATE TABLE hookonce.next (LIKE hookonce.bodies_default)`,
		fmt.Sprintf(`ALTER TABLE hookonce.bodies ATTACH PARTITION hookonce.next FOR VALUES FROM (%d) TO (%d)`, tomorrow, tomorrow+1)} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, `default partition "bodies_default" is implied`) }) {
		t.Errorf("the server said %q", said)
	}
}
