package sqlite

import (
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/hookonce/hookonce/internal/journal"
)

// TestEveryCommitIsSynced holds the settings that a commit's durability hangs on.
func TestEveryCommitIsSynced(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pragma, want := range map[string]driver.Value{"synchronous": int64(2), "journal_mode": "wal", "wal_autocheckpoint": int64(0)} {
		got, err := s.w.value("PRAGMA " + pragma)
		if err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", pragma, got, err, want)
		}
	}
}

// TestPingWrites: what a probe costs is a write that reaches the log, and leaves nothing behind.
func TestPingWrites(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(s.path + "-wal")
	if err != nil || after.Size() <= before.Size() {
		t.Errorf("the log has %d bytes after %d (%v)", after.Size(), before.Size(), err)
	}
	if n, err := s.w.value("SELECT count(*) FROM hookonce_bodies"); err != nil || n != int64(0) {
		t.Errorf("%v bodies are left (%v)", n, err)
	}
}

// TestFullDisk accepts until there is no room: the call fails, leaves nothing of its batch, and the
// store goes on when there is room again.
func TestFullDisk(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, n := journal.NewIDs(0, 0), 0
	accept := func() ([]*journal.Record, []journal.Result, error) {
		var batch []*journal.Record
		for range 5 { // less than a Ping asks room for
			n++
			batch = append(batch, &journal.Record{ID: ids.Next(time.Now()), Event: &journal.Event{
				Source: "billing", Key: fmt.Sprintf("evt_%d", n), Body: make([]byte, 4096),
				Destinations: []string{"app"}, ReceivedAt: time.Now(),
			}})
		}
		results, err := s.Accept(t.Context(), batch, time.Now(), time.Now())
		return batch, results, err
	}
	if _, err := s.w.value("PRAGMA max_page_count = 100"); err != nil {
		t.Fatal(err)
	}
	var batch []*journal.Record
	for err == nil && n < 10_000 {
		batch, _, err = accept()
	}
	if primary(err) != sqlite3.SQLITE_FULL {
		t.Fatalf("filling the disk: %v", err)
	}
	if err := s.Ping(t.Context()); primary(err) != sqlite3.SQLITE_FULL {
		t.Errorf("Ping on a full disk: %v", err)
	}
	if _, err := s.w.value("PRAGMA max_page_count = 10000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping when there is room again: %v", err)
	}
	results, err := s.Accept(t.Context(), batch, time.Now(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r != (journal.Result{Status: journal.Accepted, ID: batch[i].ID}) {
			t.Errorf("entry %d of the failed batch: %+v, want it to be new", i, r)
		}
	}
}
