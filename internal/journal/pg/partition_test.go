package pg_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookonce/hookonce/internal/journal"
)

// Partitions are made ahead, made like the default one, and take what comes.
func TestPartitionsAreMadeAhead(t *testing.T) {
	c := newCalendar(t)
	c.keep.Attempts = 90 * day
	d := c.ensurePartitions()
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
	c.ensurePartitions()
	c.ensurePartitions()
	if got := c.partitions("bodies"); len(got) != 6 || got[5] != "bodies_20260319" {
		t.Errorf("two days later: %v", got)
	}
}

// What no partition is for is stored all the same, and partitions are made around it.
func TestClockJumps(t *testing.T) {
	c := newCalendar(t)
	before := c.done("billing", "before") // before there are any
	c.ensurePartitions()
	c.wantPartitions("bodies", "bodies_20260315", "bodies_20260316", "bodies_20260317")
	c.now = noon.Add(10 * day) // a clock that is wrong
	ahead := c.done("billing", "ahead")
	c.now, c.ids = noon.Add(-1000*day), journal.NewIDs(7, 0)
	behind := c.done("billing", "behind")
	for _, e := range []*journal.Record{before, ahead, behind} {
		if in := c.in("bodies", e.ID); in != "bodies_default" {
			t.Errorf("%s is in %s", e.Key, in)
		}
	}
	c.now = noon.Add(9 * day)
	c.ensurePartitions()
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

// What was numbered by a clock that was ahead is in no partition that goes, and is deleted when it is as old as it was received.
func TestClockThatWasAhead(t *testing.T) {
	c := newCalendar(t)
	c.ensurePartitions()
	c.now = noon.AddDate(5, 0, 0)
	c.ensurePartitions()
	ahead := c.done("billing", "ahead")
	c.now = noon
	old := c.done("billing", "old")
	c.now = noon.Add(8 * day)
	c.ensurePartitions()
	c.drop()
	p := journal.Purge{Kind: journal.KindBodies, Before: c.now.Add(-7 * day), Others: true, Limit: 10, Ahead: true, Now: c.now}
	if purged, err := c.store.Purge(t.Context(), p); err != nil || purged.Deleted != 1 || purged.More {
		t.Errorf("purged %+v, %v", purged, err)
	}
	if n := c.count(`SELECT count(*) FROM hookonce.bodies`); n != 1 || c.in("bodies", ahead.ID) == "" || old.ID < ahead.ID {
		t.Errorf("%d bodies are left; %d came after %d", n, old.ID, ahead.ID)
	}
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
