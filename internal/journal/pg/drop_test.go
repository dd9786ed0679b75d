package pg_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testskip"
)

// Ids outlive what is dropped; a partition goes when the youngest that can be in it is past its period.
func TestPartitionsAreDropped(t *testing.T) {
	c := newCalendar(t)
	c.ensurePartitions()
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
	d, err := c.store.DropPartitions(t.Context(), c.now, &c.keep)
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

// What is open, and what belongs to a source with a longer period or none, outlives its partition, can be delivered,
// and goes when its own time has come, if it ever does.
func TestNeededRowsOutliveTheirPartition(t *testing.T) {
	c := newCalendar(t)
	c.ensurePartitions()
	long := c.keep.Period
	long.Bodies, long.Attempts = 30*day, 30*day
	forever := c.keep.Period
	forever.Bodies, forever.Attempts = 0, 0
	c.keep.Sources = map[string]journal.Period{"ledger": long, "archive": forever, "other": c.keep.Period}
	gone := []*journal.Record{c.done("billing", "done"), c.done("other", "others")}
	kept := []*journal.Record{c.done("ledger", "ledger"), c.done("archive", "archive")}
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
		attempted := slices.Contains([]string{"ledger", "archive", "dead", "failed"}, e.Key)
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
	if err != nil || len(list.Events) != 2 || list.Events[0].Key != "archive" || list.Events[1].Key != "ledger" {
		t.Errorf("known to be done at its destination: %+v, %v", list.Events, err)
	}
	replayed, err := c.store.Replay(t.Context(), journal.Replay{Force: true, Start: c.now, By: "ada", Reason: "x"}, 100)
	if err != nil || replayed.Deliveries != 4 || replayed.Forced != 2 { // dead, failed, ledger, archive
		t.Fatalf("Replay = %+v, %v", replayed, err)
	}
	work := c.takes()
	if got := slices.Sorted(maps.Keys(work)); !slices.Equal(got, []string{"archive", "dead", "failed", "ledger", "pending", "processing"}) {
		t.Errorf("took %v", got)
	}
	c.ends(journal.Done, slices.Collect(maps.Values(work))...)
	rest := journal.Purge{Kind: journal.KindBodies, Before: c.now.Add(-7 * day), Sources: []string{"archive", "ledger"}, Others: true, Limit: 100}
	if purged, err := c.store.Purge(t.Context(), rest); err != nil || purged.Deleted != 4 {
		t.Errorf("Purge of what was kept = %+v, %v", purged, err)
	}
	if n := c.count(`SELECT count(*) FROM hookonce.kept_bodies`); n != 2 {
		t.Errorf("%d bodies are kept", n)
	}
}

// A look through a large partition, of which a source keeps rows for longer, takes many calls, each of which goes on from where
// the one before has ended or failed. Rows of other kinds do not wait for its end.
func TestLookThroughLargePartition(t *testing.T) {
	testskip.Long(t)
	c := newCalendar(t)
	c.ensurePartitions()
	c.keep.Sources = map[string]journal.Period{"archive": {}}
	first := c.done("archive", "first")
	c.exec(`INSERT INTO hookonce.bodies SELECT $1::bigint + n, '', '' FROM generate_series(1, 250000) n`, journal.FirstID(c.now.Add(time.Hour)))
	c.now = c.now.Add(2 * time.Hour)
	last := c.done("archive", "last")
	c.now = noon.Add(8 * day)
	call := func() {
		c.Helper()
		d, err := c.store.DropPartitions(c.Context(), c.now, &c.keep)
		if _, dropped := d.Rows[journal.KindBodies]; err != nil || !d.More || d.Busy || dropped {
			c.Fatalf("Drop = %+v, %v", d, err)
		}
	}
	for range 2 { // more than half of it
		call()
		if c.in("bodies", first.ID) != "kept_bodies" || c.in("bodies", last.ID) != "bodies_20260314" {
			t.Fatal("the look is at its end already, or has not begun: this tests nothing")
		}
	}
	if slices.Contains(c.partitions("attempts"), "attempts_20260314") {
		t.Error("the other kind waits")
	}
	tx, err := c.connect().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('"hookonce".bodies', 0))`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it ends before its own patience does
	defer cancel()
	if d, err := c.store.DropPartitions(ctx, c.now, &c.keep); err == nil || d.More {
		t.Fatalf("Drop = %+v, %v", d, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tx, err = c.connect().Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if call(); c.in("bodies", last.ID) != "kept_bodies" {
		t.Error("what was seen is looked at again")
	}
	for range 2 { // another look
		call()
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE hookonce.bodies IN ACCESS SHARE MODE`); err != nil { // somebody reads
		t.Fatal(err)
	}
	for range 2 {
		if d, err := c.store.DropPartitions(t.Context(), c.now, &c.keep); err != nil || d.More || !d.Busy {
			t.Fatalf("Drop, with somebody in the way, = %+v, %v", d, err)
		}
	}
	c.now = c.now.Add(2 * time.Hour)
	call() // what was seen so long ago is looked at again
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := c.drop(); calls != 3 || slices.Contains(c.partitions("bodies"), "bodies_20260314") { // it is dropped, and nothing is left
		t.Errorf("after %d calls there are %v", calls, c.partitions("bodies"))
	}
	for _, e := range []*journal.Record{first, last} {
		if h, err := c.store.History(t.Context(), e.ID); err != nil || !h.HasBody || len(h.Attempts) != 1 {
			t.Errorf("%s: %+v, %v", e.Key, h, err)
		}
	}
}

// A source with a shorter period does not wait for the partition.
func TestShorterPeriodsInPartitions(t *testing.T) {
	c := newCalendar(t)
	c.ensurePartitions()
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
			_, err := s.EnsurePartitions(context.WithoutCancel(t.Context()), c.now, &c.keep)
			return err
		})
		c.ensurePartitions() // what was in somebody's way
		if got := c.partitions("bodies"); len(got) != 4 {
			t.Fatalf("partitions: %v", got)
		}
		dead := c.accepts("billing", c.now.String())
		c.ends(journal.Dead, c.takes()[dead.Key])
		c.now = c.now.Add(20 * day)
		together(func(s *pg.Store) error {
			_, err := s.DropPartitions(context.WithoutCancel(t.Context()), c.now, &c.keep)
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
	c.ensurePartitions()
	dead := c.accepts("billing", "dead")
	c.ends(journal.Dead, c.takes()["dead"])
	done := c.done("billing", "done")
	c.now = noon.Add(8 * day)
	if d, err := c.store.DropPartitions(t.Context(), c.now, &c.keep); err != nil || !d.More || len(d.Rows) != 0 {
		t.Fatalf("the first call: %+v, %v", d, err)
	}
	c.store.Close()
	c.store = open(t, c.dsn, "")
	if c.in("bodies", dead.ID) != "kept_bodies" || c.in("bodies", done.ID) != "bodies_20260314" {
		t.Fatal("this tests nothing")
	}
	for _, e := range []*journal.Record{dead, done} {
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
	testskip.Long(t)
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
			c.ensurePartitions()
			c.done("billing", "evt_1")
			c.now = noon.Add(8 * day)
			tx, err := c.connect().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			d, err := c.store.DropPartitions(t.Context(), c.now, &c.keep)
			if err != nil || !d.Busy || d.Rows[journal.KindBodies] != 0 || len(c.partitions("bodies")) != 4 {
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
		c.ensurePartitions()
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
		c.ensurePartitions()
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
