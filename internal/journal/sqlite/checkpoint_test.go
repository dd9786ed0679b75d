package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// TestReaderHoldsUpNoCommit: while a backup, or a person with a query, reads an old state of the file,
// the log grows past its limits and commits go on. When the reader has gone, the log starts over.
func TestReaderHoldsUpNoCommit(t *testing.T) {
	const size, body = 1 << 20, 64 << 10
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{LogSize: size})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fill := func(name string, bytes int) (log int64) {
		t.Helper()
		for i := range bytes / body {
			e := entry(fmt.Sprintf("%s_%d", name, i))
			e.Body = make([]byte, body)
			// Less time than SQLite would wait for the reader.
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			if _, err := s.Accept(ctx, []*journal.Entry{e}, time.Now(), time.Now().Add(time.Hour)); err != nil {
				t.Fatalf("%s: after %d events: %v", name, i, err)
			}
			cancel()
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	fill("before", body)
	reader, err := beside(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRow(`SELECT count(*) FROM hookonce_events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	grown := fill("while reading", 6*size)
	if grown < 6*size {
		t.Fatalf("the log has %d KB: the reader did not hold it", grown>>10)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if log := fill("after", 10*size); log > grown+2*size {
		t.Errorf("the log went on growing from %d to %d KB", grown>>10, log>>10)
	}
}
