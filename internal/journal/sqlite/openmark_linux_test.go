package sqlite_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// TestMissingLogIsToldOf: a file that is moved without its log after a crash is told from one that was closed, and from a backup.
func TestMissingLogIsToldOf(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "journal.db"), filepath.Join(dir, "backup.db")
	warned := func(name, path string) bool {
		t.Helper()
		lines := make(chronicle, 100)
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(lines)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			return false
		}
		lines.await(t, slog.LevelWarn, "write-ahead log is not beside it")
		return true
	}
	if err := unix.Setxattr(dir, "user.hookonce.test", []byte("1"), 0); err != nil {
		t.Skipf("the file system has no attributes: %v", err)
	}
	s := open(t, path)
	if _, err := beside(t, path).ExecContext(t.Context(), "VACUUM INTO '"+backup+"'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if warned("a backup", backup) {
		t.Error("warned of a backup")
	}
	if path = filepath.Join(dir, "new.db"); warned("new", path) {
		t.Error("warned of a new file")
	}
	kill(t, path, 20, map[string]int64{})
	if warned("after a crash", path) {
		t.Error("warned of a file with its log")
	}
	if warned("after a close", path) {
		t.Error("warned of a file that was closed")
	}
	kill(t, path, 20, map[string]int64{})
	moved := filepath.Join(dir, "moved.db")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if !warned("moved", moved) {
		t.Error("did not warn of a file that was moved without its log")
	}
	if warned("again", moved) {
		t.Error("warned twice")
	}
}
