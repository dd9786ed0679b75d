package pg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// A commit whose wait for the standby was given up is in the primary's tables, and everybody sees it, as after a crash of the
// primary. A copy is no reason to acknowledge it: with the primary the event would be lost. The copy waits for the standby
// as the first did.
func TestACopyIsAcknowledgedWhenTheStandbyHasIt(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	s := open(t, dsn, "replicated")
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	within := func(d time.Duration, key string) ([]journal.Result, error) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return accept(ctx, s, entry(key))
	}
	if res, err := within(time.Second, "a"); err == nil {
		t.Fatalf("%v while commits wait for a standby that hears nothing", res)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var seen int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM replicated.events`).Scan(&seen); err != nil {
			t.Fatal(err)
		}
		if seen == 1 { // its writer gave the wait up
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the event is nowhere")
		}
	}
	if res, err := within(time.Second, "a"); err == nil {
		t.Fatalf("a copy was answered %v, and no standby has the event", res[0].Status)
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	res, err := within(time.Minute, "a")
	if err != nil || res[0].Status != journal.Duplicate {
		t.Errorf("once the standby follows: %v, %v", res, err)
	}
}

// A server that answers, and whose commits wait for a standby that is away, takes nothing; nor does one that lacks the right to it.
func TestPingWhereNothingIsTaken(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	s := open(t, dsn, "pinged")
	ping := func(s *pg.Store, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return s.Ping(ctx)
	}
	if err := ping(s, time.Minute); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, text := range []string{
		`CREATE ROLE reader LOGIN`, `GRANT USAGE ON SCHEMA pinged TO reader`, `GRANT SELECT ON ALL TABLES IN SCHEMA pinged TO reader`,
		`GRANT USAGE ON ALL SEQUENCES IN SCHEMA pinged TO reader`,
	} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := pg.Open(t.Context(), dsn+"&role=reader", pg.Options{Schema: "pinged"})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := ping(reader, time.Minute); err == nil || !strings.Contains(err.Error(), "grant") {
		t.Errorf("a role that may insert nothing: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `GRANT INSERT ON pinged.events TO reader`); err != nil {
		t.Fatal(err)
	}
	if err := ping(reader, time.Minute); err != nil {
		t.Errorf("once it may: %v", err)
	}
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	if err := ping(s, 2*time.Second); err == nil {
		t.Error("it can be written to while commits wait for a standby that hears nothing")
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	if err := ping(s, time.Minute); err != nil {
		t.Errorf("once the standby follows: %v", err)
	}
}

// An operator who sees commits wait for a standby that is away cancels them. PostgreSQL says that they succeeded, with a warning;
// nobody is told so, because with the primary the event would be lost. That holds where the role is set to hear no warnings.
func TestACancelledWaitIsNoCommit(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `ALTER ROLE CURRENT_USER SET client_min_messages = error`); err != nil {
		t.Fatal(err)
	}
	s, cell := open(t, dsn, "cancelled"), open(t, dsn, "cell")
	mustRaise(t, cell, 1)
	dead, done, held := entry("dead"), entry("done"), entry("held")
	if _, err := accept(t.Context(), s, dead, done, held); err != nil {
		t.Fatal(err)
	}
	outcome := func(e *journal.Record, state journal.State) journal.Outcome {
		return journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1}, State: state, Started: time.Now()}
	}
	if applied, err := s.Finish(t.Context(), []journal.Outcome{outcome(dead, journal.Dead), outcome(done, journal.Done)}); err != nil || !applied[0] || !applied[1] {
		t.Fatal(applied, err)
	}
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	cancelled := func(do func(ctx context.Context) error) error {
		told := make(chan error, 1)
		go func() { told <- do(t.Context()) }()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
			var n int
			if err := conn.QueryRow(t.Context(), cancel).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				return <-told
			}
			select {
			case err := <-told:
				t.Fatalf("no commit waits, and the answer is %v", err)
			default:
			}
			if time.Now().After(deadline) {
				t.Fatal("no commit waits")
			}
		}
	}
	for what, do := range map[string]func(ctx context.Context) error{
		"the event is stored": func(ctx context.Context) error { _, err := accept(ctx, s, entry("a")); return err },
		"the event is known":  func(ctx context.Context) error { _, err := s.Known(ctx, entry("a").Source, []string{"a"}); return err },
		"there is a map":      func(ctx context.Context) error { _, err := cell.CellRecord(ctx); return err },
		"what is dead begins again": func(ctx context.Context) error {
			_, err := s.Replay(ctx, journal.Replay{Start: time.Now(), By: "op"}, 10)
			return err
		},
		"a destination is paused": func(ctx context.Context) error { return pause(ctx, s) },
		"it is on record who did what": func(ctx context.Context) error {
			return s.RecordAudit(ctx, journal.Audit{At: time.Now(), By: "op", Action: journal.ActionReconcile})
		},
		"alerts are silenced": func(ctx context.Context) error {
			_, err := s.ChangeAlerts(ctx, false, func(*journal.AlertBook) (*journal.AlertChanges, error) {
				return &journal.AlertChanges{Silence: []journal.Silence{{At: time.Now(), Until: time.Now().Add(time.Hour), By: "op"}}}, nil
			})
			return err
		},
	} {
		if err := cancelled(do); err == nil {
			t.Errorf("it is told that %s, and no standby has it", what)
		}
	}
	for what, do := range map[string]func(ctx context.Context) error{ // which, done again, would do more or come too late
		"a forced replay": func(ctx context.Context) error {
			_, err := s.Replay(ctx, journal.Replay{EventID: done.ID, Force: true, Start: time.Now(), By: "op"}, 1)
			return err
		},
		"an outcome": func(ctx context.Context) error {
			_, err := s.Finish(ctx, []journal.Outcome{outcome(held, journal.Done)})
			return err
		},
	} {
		if err := cancelled(do); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	res, err := accept(t.Context(), s, entry("a"))
	if err != nil || res[0].Status != journal.Duplicate {
		t.Errorf("once the standby follows: %v, %v", res, err)
	}
}

// pause pauses a destination.
func pause(ctx context.Context, s *pg.Store) error {
	_, err := s.SetPaused(ctx, journal.Pause{Destination: "app", At: time.Now(), By: "op"}, true)
	return err
}

// Nothing is told that is in the primary alone, also where the role is set to lose commits: neither that an event is on record nor
// that there is a map of cells, by which others would accept what this store will accept once the standby has taken over.
func TestNothingIsToldThatNoStandbyHas(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `ALTER ROLE CURRENT_USER SET synchronous_commit = off`); err != nil {
		t.Fatal(err)
	}
	s, cell := open(t, dsn, "told"), open(t, dsn, "cell")
	mustRaise(t, cell, 1)
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	asked := map[string]func(ctx context.Context) error{
		"a copy":        func(ctx context.Context) error { _, err := accept(ctx, s, entry("a")); return err },
		"what is known": func(ctx context.Context) error { _, err := s.Known(ctx, entry("a").Source, []string{"a"}); return err },
		"a pause":       func(ctx context.Context) error { return pause(ctx, s) },
		"maps":          func(ctx context.Context) error { _, err := cell.CellRecord(ctx); return err },
	}
	within := func(d time.Duration, do func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return do(ctx)
	}
	for what, do := range map[string]func(ctx context.Context) error{
		"an event": asked["a copy"],
		"a pause":  asked["a pause"],
		"a map": func(ctx context.Context) error {
			return cell.RaiseCellMap(ctx, journal.CellRaise{Cell: "eu", Maps: cellMaps(2)})
		},
	} {
		if within(time.Second, do) == nil {
			t.Errorf("%s is stored while commits wait for a standby that hears nothing", what)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var seen int
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM told.events) + (SELECT count(*) FROM told.pauses) + (SELECT count(*) FROM cell.cell_maps)`).Scan(&seen); err != nil {
			t.Fatal(err)
		}
		if seen == 4 { // what was given up is there, and everybody sees it
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is there")
		}
	}
	for what, do := range asked {
		if within(time.Second, do) == nil {
			t.Errorf("%s: somebody is told, and no standby has it", what)
		}
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"what is known", "a pause", "maps"} {
		if err := within(time.Minute, asked[what]); err != nil {
			t.Errorf("%s, once the standby follows: %v", what, err)
		}
	}
}
