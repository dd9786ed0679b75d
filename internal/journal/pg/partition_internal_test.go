package pg

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

func TestParseBound(t *testing.T) {
	for text, want := range map[string][2]int64{
		"FOR VALUES FROM ('12') TO ('345')":                 {12, 345},
		"FOR VALUES FROM (MINVALUE) TO ('345')":             {0, 345},
		"FOR VALUES FROM ('12') TO (MAXVALUE)":              {},
		"FOR VALUES IN ('12')":                              {},
		"FOR VALUES FROM ('99999999999999999999') TO ('1')": {},
		"": {},
	} {
		first, end, err := parseBound(text)
		if (err != nil) != (want == [2]int64{}) || err == nil && [2]int64{first, end} != want {
			t.Errorf("parseBound(%q) = %d, %d, %v", text, first, end, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for keep, want := range map[time.Duration]time.Duration{
		0: 30 * day, time.Minute: time.Hour, day - 1: time.Hour, day: day, 7 * day: day, 30 * day: day,
		31 * day: 2 * day, 90 * day: 3 * day, 400 * day: 14 * day, 36500 * day: 30 * day,
	} {
		if got := interval(keep); got != want {
			t.Errorf("of what is kept for %v a partition is for %v, want %v", keep, got, want)
		}
	}
}

func TestGaps(t *testing.T) {
	for name, tt := range map[string]struct {
		have        []partition
		from, until int64
		want        []gap
	}{
		"none there":                {nil, 25, 51, []gap{{20, 30}, {30, 40}, {40, 50}, {50, 60}}},
		"until a boundary":          {nil, 20, 40, []gap{{20, 30}, {30, 40}}},
		"all there":                 {[]partition{{first: 0, end: 100}}, 25, 50, nil},
		"some there":                {[]partition{{first: 10, end: 30}}, 25, 50, []gap{{30, 40}, {40, 50}}},
		"one is missing":            {[]partition{{first: 20, end: 30}, {first: 40, end: 50}}, 25, 50, []gap{{30, 40}}},
		"all before":                {[]partition{{first: 0, end: 10}}, 25, 40, []gap{{20, 30}, {30, 40}}},
		"all behind":                {[]partition{{first: 90, end: 100}}, 25, 40, []gap{{20, 30}, {30, 40}}},
		"they were shorter":         {[]partition{{first: 20, end: 23}, {first: 23, end: 26}}, 25, 40, []gap{{26, 30}, {30, 40}}},
		"they were longer":          {[]partition{{first: 0, end: 37}}, 25, 50, []gap{{37, 40}, {40, 50}}},
		"one begins in an interval": {[]partition{{first: 33, end: 47}}, 25, 50, []gap{{20, 30}, {30, 33}, {47, 50}}},
	} {
		if got := gaps(tt.have, tt.from, tt.until, 10); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestDropLooksAgain: work that began after everything needed was put aside keeps its partition.
func TestDropLooksAgain(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	keep := journal.Retention{Period: journal.Period{Bodies: 7 * day, Attempts: 7 * day}}
	if _, err := s.EnsurePartitions(t.Context(), now, &keep); err != nil {
		t.Fatal(err)
	}
	all, err := s.partitions(t.Context(), s.pool, journal.KindBodies)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	look := s.lookAt(journal.KindBodies, all[0], nil, now)
	if more, busy, err := s.putAside(t.Context(), journal.KindBodies, all[0], look); err != nil || busy || more || look.moved != 0 {
		t.Fatalf("putAside = %v, %v, %v of %+v", more, busy, err, look)
	}
	late := &journal.Record{ID: journal.NewIDs(1, 0).Next(now), Event: &journal.Event{
		Source: "billing", Key: "evt_1", Body: []byte("x"),
		Destinations: []string{"app"}, ReceivedAt: now,
	}}
	if _, err := s.Accept(t.Context(), []*journal.Record{late}, now, now); err != nil {
		t.Fatal(err)
	}
	if done, needed, err := s.dropPartition(t.Context(), journal.KindBodies, all[0]); err != nil || done || !needed {
		t.Errorf("dropPartition = %v, %v, %v", done, needed, err)
	}
	if work, err := s.Take(t.Context(), now, now, journal.Wanted{Deliveries: 1}); err != nil || len(work) != 1 || string(work[0].Body) != "x" {
		t.Errorf("Take = %v, %v", work, err)
	}
}

// TestCrowdedDefault: where the server would have to look through much that is in the default partition, no other is made,
// which is no failure. Old ones are dropped all the same, the default partition is emptied row by row, and then there are
// partitions again.
func TestCrowdedDefault(t *testing.T) {
	testskip.Long(t)
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	keep := journal.Retention{Period: journal.Period{Bodies: 7 * day, Attempts: 7 * day}}
	ensure := func(want int) {
		t.Helper()
		divided, err := s.EnsurePartitions(t.Context(), now, &keep)
		if n := divided[journal.KindBodies].Partitions; err != nil || n != want {
			t.Fatalf("there are %d partitions, want %d; %v", n, want, err)
		}
	}
	ensure(4)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO hookonce.bodies SELECT $1::bigint + n, '', '' FROM generate_series(1, 200000) n`,
		journal.FirstID(now.Add(5*day))); err != nil {
		t.Fatal(err)
	}
	s.attach = time.Millisecond
	now = now.Add(12 * day)
	ensure(4)
	for more := true; more; {
		d, err := s.DropPartitions(t.Context(), now, &keep)
		if err != nil || d.Busy {
			t.Fatalf("Drop = %+v, %v", d, err)
		}
		more = d.More
	}
	s.attach = maxAttach // whoever stores waits while the server looks through it: that is not done again within an hour
	now = now.Add(attachAgain - time.Second)
	ensure(0)
	now = now.Add(day)
	p := journal.Purge{Kind: journal.KindBodies, Before: now.Add(-7 * day), Others: true, Limit: 100000}
	for more := true; more; {
		purged, err := s.Purge(t.Context(), p)
		if err != nil || purged.Deleted == 0 {
			t.Fatalf("Purge = %+v, %v", purged, err)
		}
		p.After, more = purged.Next, purged.More
	}
	if _, err := s.pool.Exec(t.Context(), `VACUUM hookonce.bodies_default`); err != nil {
		t.Fatal(err)
	}
	ensure(4)
}

// TestDropKeepsStoresOut: while a drop waits for its last lock, which a reader keeps from it, nothing can be stored in
// the partition that it has looked through.
func TestDropKeepsStoresOut(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	keep := journal.Retention{Period: journal.Period{Bodies: 7 * day, Attempts: 7 * day}}
	if _, err := s.EnsurePartitions(t.Context(), now, &keep); err != nil {
		t.Fatal(err)
	}
	reader, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback(t.Context())
	if _, err := reader.Exec(t.Context(), `LOCK TABLE ONLY hookonce.bodies IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			var locked bool
			err := s.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND granted
				AND relation = to_regclass('hookonce.bodies_20260314'))`).Scan(&locked)
			if err != nil || locked {
				return
			}
		}
		t.Error("the partition is not locked against stores")
	}()
	for {
		all, err := s.partitions(t.Context(), s.pool, journal.KindBodies)
		if err != nil || len(all) != 4 {
			t.Fatalf("%d partitions, %v", len(all), err)
		}
		if done, _, err := s.dropPartition(t.Context(), journal.KindBodies, all[0]); done || err != nil {
			t.Fatalf("dropPartition = %v, %v", done, err)
		}
		select {
		case <-seen:
			return
		default:
		}
	}
}

// TestPartitionThatIsMadeMeanwhile: a partition is made while rows of it are on their way to the default one, where the
// server then refuses them. They are stored all the same, at the second try.
func TestPartitionThatIsMadeMeanwhile(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	e := &journal.Record{ID: journal.NewIDs(1, 0).Next(now), Event: &journal.Event{Source: "billing", Key: "evt_1", Body: []byte("x"), Destinations: []string{"app"}, ReceivedAt: now}}
	for _, c := range []struct {
		kind  journal.Kind
		store func() error
	}{
		{journal.KindBodies, func() error {
			_, err := s.Accept(t.Context(), []*journal.Record{e}, now, now)
			return err
		}},
		{journal.KindAttempts, func() error {
			work, err := s.Take(t.Context(), now, now.Add(time.Minute), journal.Wanted{Deliveries: 1})
			if err != nil || len(work) != 1 {
				return fmt.Errorf("took %v: %w", work, err)
			}
			_, err = s.Finish(t.Context(), []journal.Outcome{{Held: work[0].Held, State: journal.Done, Started: now}})
			return err
		}},
	} {
		tx, err := s.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := s.table(string(c.kind) + "_made")
		for _, sql := range []string{
			fmt.Sprintf("CREATE TABLE %s (LIKE %s)", name, s.table(string(c.kind)+"_default")),
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", s.table(string(c.kind)), name, e.ID, e.ID+1),
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		stored := make(chan error, 1)
		go func() { stored <- c.store() }()
		awaitBlocked(t, s)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-stored; err != nil {
			t.Error(err)
		}
		var rows int
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%d rows of %s, %v", rows, c.kind, err)
		}
	}
}

// awaitBlocked waits until a session waits for another.
func awaitBlocked(t *testing.T, s *Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		var waits bool
		if err := s.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			return
		}
	}
	t.Fatal("nobody waits")
}
