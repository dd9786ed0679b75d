package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// about returns an entry in the ordering group of a resource.
func about(key, resource string) *journal.Record {
	e := entry(key)
	e.Resource, e.Hold, e.Ordered = resource, nil, e.Destinations
	return e
}

// groupLock is a session that holds the lock of the ordering group of resource a, as one that takes does.
type groupLock struct {
	*testing.T
	conn *pgx.Conn
	tx   pgx.Tx
}

func lockGroup(t *testing.T, dsn string) *groupLock {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &groupLock{t, conn, tx}
	l.exec(`SELECT FROM hookonce.lanes WHERE resource = 'billing/a' FOR UPDATE`)
	return l
}

func (l *groupLock) exec(sql string) {
	l.Helper()
	if _, err := l.tx.Exec(l.Context(), sql); err != nil {
		l.Fatal(err)
	}
}

// awaitWaiting waits until another session waits for this one.
func (l *groupLock) awaitWaiting(ended <-chan error) {
	l.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var waits bool
		if err := l.conn.QueryRow(l.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))`).Scan(&waits); err != nil {
			l.Fatal(err)
		}
		if waits {
			return
		}
		select {
		case err := <-ended:
			l.Fatalf("went on without the lock of the ordering group (error %v)", err)
		default:
		}
	}
	l.Fatal("nobody waits for the ordering group")
}

func take(t *testing.T, s *pg.Store, want ...string) []*journal.Work {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	work, err := s.Take(ctx, time.Now(), time.Now().Add(time.Hour), journal.Wanted{
		Deliveries: 10, Destinations: []journal.Want{{Destination: "app", Deliveries: 10}},
	})
	if err != nil || len(work) != len(want) {
		t.Fatalf("took %v (%v), want %q", work, err, want)
	}
	for i, w := range work {
		if w.Key != want[i] {
			t.Errorf("took %s, want %s", w.Key, want[i])
		}
	}
	return work
}

// TestTakeSkipsLockedOrderingGroups: somebody else decides whose turn it is in an ordering group, and nobody waits for
// that.
func TestTakeSkipsLockedOrderingGroups(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	if _, err := accept(t.Context(), s, about("a1", "a"), about("b1", "b")); err != nil {
		t.Fatal(err)
	}
	l := lockGroup(t, dsn)
	take(t, s, "b1")
	l.exec("COMMIT")
	take(t, s, "a1")
}

// TestAcceptWaitsForTheOrderingGroup: somebody else finds an ordering group empty and deletes it, while an event comes for it.
// Were it stored without the lock, nobody would ever look for it.
func TestAcceptWaitsForTheOrderingGroup(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	if _, err := accept(t.Context(), s, about("a1", "a")); err != nil {
		t.Fatal(err)
	}
	finish(t, s, take(t, s, "a1")[0])
	l := lockGroup(t, dsn)
	ended := make(chan error, 1)
	go func() {
		_, err := accept(t.Context(), s, about("a2", "a"))
		ended <- err
	}()
	l.awaitWaiting(ended)
	l.exec(`DELETE FROM hookonce.lanes WHERE resource = 'billing/a'`)
	l.exec("COMMIT")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	take(t, s, "a2")
}

// TestFinishWaitsForTheOrderingGroup: whose turn it is depends on what has ended, so that may not change meanwhile.
func TestFinishWaitsForTheOrderingGroup(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	if _, err := accept(t.Context(), s, about("a1", "a"), about("a2", "a")); err != nil {
		t.Fatal(err)
	}
	w := take(t, s, "a1")[0]
	l := lockGroup(t, dsn)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Finish(t.Context(), []journal.Outcome{{Held: w.Held, State: journal.Done, Started: time.Now()}})
		ended <- err
	}()
	l.awaitWaiting(ended)
	l.exec("COMMIT")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	take(t, s, "a2")
}

func finish(t *testing.T, s *pg.Store, w *journal.Work) {
	t.Helper()
	applied, err := s.Finish(t.Context(), []journal.Outcome{{Held: w.Held, State: journal.Done, Started: time.Now()}})
	if err != nil || !applied[0] {
		t.Fatal(applied, err)
	}
}
