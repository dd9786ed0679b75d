package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// awkward is as awkward as the name of a file can be.
const awkward = "jour nal?#%41.db"

// empty is the content of a journal in which nothing happened. To make its tables takes longer than most cases.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, awkward), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, awkward))
})

// fixture keeps a journal in a file of its own, in memory: what a disk is told, and keeps, is the subject of other tests.
func fixture(t testing.TB) *journaltest.Fixture {
	content, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := throwaway.MemoryDir("journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, awkward)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var last *sqlite.Store
	exec := func(t testing.TB, text string, args ...any) {
		t.Helper()
		if _, err := beside(t, path).ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	return &journaltest.Fixture{
		Open: func(t testing.TB) journal.Store {
			if last != nil {
				if err := last.Close(); err != nil {
					t.Fatal(err)
				}
			}
			last = open(t, path)
			return last
		},
		Refuse: func(t testing.TB, key string) {
			exec(t, fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON hookonce_events
				WHEN NEW.key = '%s' BEGIN SELECT raise(ABORT, 'refused'); END`, key))
		},
		DropBody: func(t testing.TB, id int64) { exec(t, `DELETE FROM hookonce_bodies WHERE event_id = ?`, id) },
		RanksOfOlder: func(t testing.TB) {
			exec(t, `UPDATE hookonce_newest SET resource = (SELECT resource FROM hookonce_events WHERE id = event_id), rank_kind = NULL`)
			exec(t, `UPDATE hookonce_events SET rank_kind = NULL`)
		},
		Attempts: func(t testing.TB, id int64) []journal.Outcome { return attempts(t, beside(t, path), id) },
		Rows:     func(t testing.TB, id int64) map[journal.Kind]int { return countRows(t, beside(t, path), id) },
	}
}

func countRows(t testing.TB, db *sql.DB, id int64) map[journal.Kind]int {
	t.Helper()
	n := map[journal.Kind]int{}
	for kind, where := range map[journal.Kind]string{journal.KindIDs: "events WHERE id", journal.KindBodies: "bodies WHERE event_id",
		journal.KindAttempts: "attempts WHERE event_id", journal.KindAnswers: "answers WHERE event_id"} {
		var rows int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM hookonce_`+where+` = ?`, id).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		n[kind] = rows
	}
	return n
}

// beside opens the file next to the store, as only a test may.
func beside(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(path)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func attempts(t testing.TB, db *sql.DB, id int64) (got []journal.Outcome) {
	rows, err := db.QueryContext(t.Context(), `SELECT event_id, destination, token, outcome, status, error,
		started_at, duration_us, answer FROM hookonce_attempts WHERE event_id = ? ORDER BY destination, token`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var o journal.Outcome
		var started, us int64
		if err := rows.Scan(&o.EventID, &o.Destination, &o.Token, &o.State, &o.Status, &o.Error, &started, &us, &o.Excerpt); err != nil {
			t.Fatal(err)
		}
		o.Started, o.Duration = time.UnixMicro(started), time.Duration(us)*time.Microsecond
		got = append(got, o)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestStore(t *testing.T)      { journaltest.Run(t, fixture) }
func TestConcurrent(t *testing.T) { journaltest.RunConcurrent(t, fixture) }

func BenchmarkStore(b *testing.B) {
	journaltest.Bench(b, func(b testing.TB) journal.Store { return open(b, filepath.Join(b.TempDir(), "journal.db")) })
}

// Whoever else writes to the file stands in line in this process, and does not ask SQLite for its lock beside the others.
func TestOthersWriteInTurn(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	db, err := s.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := db.Conn(t.Context())
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	for db.Stats().WaitCount == 0 {
		select {
		case err := <-got:
			t.Fatalf("the second has a connection beside the first: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := errors.Join(first.Close(), <-got); err != nil {
		t.Error(err)
	}
}
