package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// TestFailedOpenLeavesLocks: a store that cannot be opened yet is tried again while other connections to the file exist, such
// as those that record what is observed. They keep SQLite's lock on it, without which another program would delete the log.
func TestFailedOpenLeavesLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	looker, err := os.Open(path) // until the end: to close it would drop the locks
	if err != nil {
		t.Fatal(err)
	}
	defer looker.Close()
	held := func() bool {
		t.Helper()
		const shared, size = 0x40000002, 510 // https://www.sqlite.org/src/file/src/os.h
		what := unix.Flock_t{Type: unix.F_WRLCK, Start: shared, Len: size}
		if err := unix.FcntlFlock(looker.Fd(), unix.F_OFD_GETLK, &what); err != nil {
			t.Fatalf("asking for the locks of this process: %v", err) // every Linux tells
		}
		return what.Type != unix.F_UNLCK
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil || !held() {
		t.Fatalf("%v, a lock is held: %t", err, held())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if s, err := sqlite.Open(ended, path, sqlite.Options{}); err == nil {
			s.Close()
			t.Fatal("opened")
		}
		if !held() {
			t.Fatal("an Open that failed dropped the lock of another connection")
		}
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if said := openElsewhere(t, path); said == "opened\n" {
		t.Error("the file that was opened in the end is not locked")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if said := openElsewhere(t, path); said != "opened\n" {
		t.Errorf("after it was closed: %s", said)
	}
}
