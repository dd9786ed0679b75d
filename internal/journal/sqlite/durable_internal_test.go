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
		got, err := s.w.value("PRAGMA " + pragma)
		if err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", pragma, got, err, want)
		}
	}
}
