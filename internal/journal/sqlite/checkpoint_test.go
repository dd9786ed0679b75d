package sqlite_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
			if err := soon(t, s, e); err != nil {
				t.Fatalf("%s: after %d events: %v", name, i, err)
			}
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

// soon accepts an event in less time than SQLite would wait for a reader, or in the third such time: a disk may stall for one, and who
// waits for the reader does so each time.
func soon(t *testing.T, s *sqlite.Store, e *journal.Record) error {
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		_, err := s.Accept(ctx, []*journal.Record{e}, time.Now(), time.Now().Add(time.Hour))
		inTime := ctx.Err() == nil
		cancel()
		if err == nil || try == 3 || inTime {
			return err
		}
	}
}

// TestLongReaderIsToldOf: the log that grows beside a reader is counted and told of, at a bound and whenever it has doubled, commits
// go on and Ping succeeds, and when the reader is gone the file is small again, although nobody writes any more.
func TestLongReaderIsToldOf(t *testing.T) {
	const size, body = 256 << 10, 64 << 10
	const bound = 16 * size
	path := filepath.Join(t.TempDir(), "journal.db")
	lines, registry := make(chronicle, 100), prometheus.NewRegistry()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{LogSize: size, Logger: slog.New(lines), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	fill := func(bytes int64) {
		t.Helper()
		for ; gauge(t, registry, "hookonce_journal_log_bytes") < float64(bytes); n++ {
			e := entry(fmt.Sprintf("evt_%d", n))
			e.Body = make([]byte, body)
			acceptEntry(t, s, e)
		}
	}
	fill(size)
	reader, err := beside(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	if err := reader.QueryRow(`SELECT count(*) FROM hookonce_events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	fill(bound + bound/4)
	lines.await(t, slog.LevelWarn, "write-ahead log grows")
	fill(2*bound + bound) // twice what was told of last, which is at most that and what a second brought
	lines.await(t, slog.LevelWarn, "write-ahead log grows")
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	lines.await(t, slog.LevelInfo, "small again")
	if log := gauge(t, registry, "hookonce_journal_log_bytes"); log >= bound {
		t.Errorf("the log has %v bytes", log)
	}
	fill(size)
	if log := gauge(t, registry, "hookonce_journal_log_bytes"); log >= bound {
		t.Errorf("the log has %v bytes after a commit", log)
	}
	if len(lines) > 0 {
		t.Errorf("logged as well: %v", <-lines)
	}
	compare(t, s, map[string]int64{"evt_0": accept(t, s, "evt_0")})
}
