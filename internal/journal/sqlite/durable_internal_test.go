package sqlite

import (
	"database/sql/driver"
	"path/filepath"
	"testing"
)

// TestEveryCommitIsSynced holds the settings that a commit's durability hangs on.
func TestEveryCommitIsSynced(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pragma, want := range map[string]driver.Value{"synchronous": int64(2), "journal_mode": "wal", "wal_autocheckpoint": int64(0)} {
		q, err := s.w.prepare("PRAGMA " + pragma)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.query(func(row []driver.Value) error {
			if row[0] != want {
				t.Errorf("%s is %v, want %v", pragma, row[0], want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
