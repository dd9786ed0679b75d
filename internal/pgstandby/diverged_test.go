package pgstandby_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// The standby that had less of the log is promoted. The one that had more is no copy of it: neither while the new primary has
// written less, nor when it has written more. One that follows is a copy of it at every moment.
func TestTheStandbyThatHadMoreHasDiverged(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	former := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := former.DSN(t)
	var standbys [3]*pgtest.Cluster
	for i := range standbys {
		s, err := former.NewStandby()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		standbys[i] = s
	}
	primary, follower, more := standbys[0], standbys[1], standbys[2]
	conns := map[*pgtest.Cluster]*pgx.Conn{}
	for _, c := range append(standbys[:], former) {
		conn, err := pgx.Connect(t.Context(), c.Alone(dsn))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		conns[c] = conn
	}
	written := func(c *pgtest.Cluster) pgstandby.Written {
		t.Helper()
		w, err := pgstandby.ScanWritten(conns[c].QueryRow(t.Context(), pgstandby.WrittenSQL))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	replayed := func(c *pgtest.Cluster) pgstandby.Replayed {
		t.Helper()
		r, err := pgstandby.ScanReplayed(conns[c].QueryRow(t.Context(), pgstandby.ReplayedSQL))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// follows waits until a standby has what its primary has by now, and never doubts it meanwhile.
	follows := func(what string, c, of *pgtest.Cluster) {
		t.Helper()
		goal := written(of)
		for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
			r := replayed(c)
			if err := r.Follows(written(of)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if r.LSN >= goal.LSN {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: it does not come from %d to %d", what, r.LSN, goal.LSN)
			}
		}
	}
	diverged := func(what string) {
		t.Helper()
		r, w := replayed(more), written(primary)
		if err := r.Follows(w); !errors.Is(err, pgstandby.ErrDiverged) {
			t.Errorf("%s: %+v of %+v: %v", what, r, w, err)
		}
	}
	do := func(c *pgtest.Cluster, sql string) {
		t.Helper()
		if _, err := conns[c].Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range standbys {
		follows("before", s, former)
	}
	for _, s := range []*pgtest.Cluster{primary, follower} {
		if err := s.Deafen(); err != nil {
			t.Fatal(err)
		}
	}
	do(former, `SELECT pg_switch_wal()`)
	do(former, `CREATE TABLE lost ()`)
	do(former, `CHECKPOINT`)
	follows("the one that hears", more, former)
	do(more, `CHECKPOINT`) // writes down where it is, as it does every five minutes
	if err := primary.Promote(); err != nil {
		t.Fatal(err)
	}
	diverged("the new primary has written less")
	do(primary, `CHECKPOINT`)
	if err := follower.Follow(primary); err != nil {
		t.Fatal(err)
	}
	for written(primary).LSN <= replayed(more).LSN {
		do(primary, `CREATE TABLE IF NOT EXISTS kept ()`)
		do(primary, `SELECT pg_switch_wal()`)
		do(primary, `SELECT pg_logical_emit_message(true, 'more', 'log')`)
	}
	diverged("the new primary has written more")
	follows("the one that follows", follower, primary)
	if err := replayed(primary).Follows(written(primary)); err != nil {
		t.Errorf("the one that was promoted: %v", err)
	}
	if err := replayed(former).Follows(written(primary)); !errors.Is(err, pgstandby.ErrDiverged) {
		t.Errorf("the former primary: %v", err)
	}
}
