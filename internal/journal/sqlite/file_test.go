package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

func TestOneStoreAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	first := open(t, path)
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if !errors.Is(err, sqlite.ErrInUse) {
		t.Fatalf("opening twice: %v, want ErrInUse", err)
	}
	for _, want := range []string{path, fmt.Sprint(os.Getpid()), "stop it"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Errorf("the first store suffered: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// TestOneStoreUnderAllNames opens a file that is open by other names.
func TestOneStoreUnderAllNames(t *testing.T) {
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "folder"), filepath.Join(dir, "folder", "journal.db")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	link := func(to, name string) string {
		name = filepath.Join(dir, name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	byFolder, byFile := filepath.Join(link("folder", "linked"), "journal.db"), link(file, "link.db")
	if _, err := sqlite.Open(t.Context(), byFile, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("a link to nothing: %v", err)
	}
	t.Chdir(folder)
	first := open(t, byFolder) // new, and created by this name
	for _, name := range []string{file, byFolder, byFile, "journal.db", filepath.Join(folder, "..", "folder", "journal.db")} {
		if _, err := sqlite.Open(t.Context(), name, sqlite.Options{}); !errors.Is(err, sqlite.ErrInUse) {
			t.Errorf("opening %s: %v, want ErrInUse", name, err)
		}
	}
	accept(t, first, "evt_1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, byFile)
}

// TestBadFiles opens what cannot be a journal. Every error names the path and says what to do, and
// leaves nothing open.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken := filepath.Join(dir, "taken.db")
	if err := os.Mkdir(taken+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, path, want string }{
		{"missing folder", filepath.Join(dir, "no", "such", "journal.db"), "create it"},
		{"a file for a folder", filepath.Join(write("file", "x"), "journal.db"), "choose another path"},
		{"text", write("text.db", strings.Repeat("this is no database\n", 1000)), "not a SQLite database"},
		{"a folder for a file", dir, "must be able to write"},
		{"a folder that takes no lock", taken, "must be writable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 {
				_, err := sqlite.Open(t.Context(), tc.path, sqlite.Options{})
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.path) {
					t.Fatalf("error %v, want one with the path and %q", err, tc.want)
				}
			}
		})
	}
}

func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	accept(t, open(t, path), "evt_1")
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("journal.db%s has mode %o", suffix, mode)
		}
	}
}

func TestNewFilesHaveLargePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	open(t, path)
	var size int
	if err := beside(t, path).QueryRow("PRAGMA page_size").Scan(&size); err != nil || size != 8192 {
		t.Fatalf("the page size is %d (%v)", size, err)
	}
}

// TestOldFilesAreTakenAsTheyAre opens a file that another program made, with another page size and
// without a write-ahead log.
func TestOldFilesAreTakenAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	if _, err := beside(t, path).Exec("PRAGMA page_size = 4096; CREATE TABLE other (a); INSERT INTO other VALUES (42)"); err != nil {
		t.Fatal(err)
	}
	accept(t, open(t, path), "evt_1")
	var n int
	if err := beside(t, path).QueryRow("SELECT a FROM other").Scan(&n); err != nil || n != 42 {
		t.Fatalf("the other table holds %d (%v)", n, err)
	}
}

func TestLastID(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	last := func(want int64) {
		t.Helper()
		if id, err := s.LastID(t.Context()); err != nil || id != want {
			t.Fatalf("LastID = %d, %v; want %d", id, err, want)
		}
	}
	last(0)
	last(accept(t, s, "evt_1"))
}

// One event comes while the clock is five years ahead. What comes after it was set back, and after a restart, is delivered after it,
// is as old as it was received, and is forgotten in its time.
func TestClockThatWasAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	now := time.Now().Truncate(time.Millisecond)
	numbers := journal.NewIDs(0, 0)
	store := func(key string, at time.Time) int64 {
		t.Helper()
		e := entry(key)
		e.ID, e.ReceivedAt, e.Hold = numbers.Next(at), at, nil
		return acceptEntry(t, s, e)
	}
	oldest := func(want time.Time) {
		t.Helper()
		open, err := s.Open(t.Context())
		if err != nil || len(open) != 1 || !open[0].Oldest.Equal(want) {
			t.Fatalf("open: %+v, %v; want it to be from %v", open, err, want)
		}
	}
	finish := func(event int64) {
		t.Helper()
		work, err := s.Take(t.Context(), time.Now(), time.Now().Add(time.Hour), journal.Wanted{Deliveries: 1})
		if err != nil || len(work) != 1 || work[0].EventID != event {
			t.Fatalf("taken: %+v, %v; want %d", work, err, event)
		}
		if _, err := s.Finish(t.Context(), []journal.Outcome{{Held: work[0].Held, State: journal.Done, Started: now}}); err != nil {
			t.Fatal(err)
		}
	}
	first := store("ahead", now.AddDate(5, 0, 0))
	oldest(now.AddDate(5, 0, 0)) // which tells that a clock was ahead
	finish(first)
	second := store("set back", now)
	oldest(now)
	s.Close()
	s = open(t, path)
	last, err := s.LastID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	numbers = journal.NewIDs(0, last)
	third := store("restarted", now.Add(time.Minute))
	if first >= second || second >= third {
		t.Fatalf("numbered %d, %d, %d", first, second, third)
	}
	oldest(now)
	finish(second)
	oldest(now.Add(time.Minute))
	finish(third)
	then := now.AddDate(0, 0, 8)
	p := journal.Purge{Kind: journal.KindBodies, Before: then.AddDate(0, 0, -7), Others: true, Limit: 10}
	for ahead, want := range map[bool]int{false: 0, true: 2} {
		p.Ahead, p.Now = ahead, then
		if purged, err := s.Purge(t.Context(), p); err != nil || purged.Deleted != want || purged.More {
			t.Errorf("purged (ahead: %t): %+v, %v; want %d", ahead, purged, err, want)
		}
	}
	for id, want := range map[int64]bool{first: true, second: false, third: false} {
		if h, err := s.History(t.Context(), id); err != nil || h.HasBody != want {
			t.Errorf("%d has its body: %+v, %v; want %t", id, h, err, want)
		}
	}
}

// TestLogStaysBounded writes ten times as much as the write-ahead log may hold, as fast as it can.
func TestLogStaysBounded(t *testing.T) {
	const size, body = 1 << 20, 64 << 10
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{LogSize: size})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 * 4 * size / body {
		e := entry(fmt.Sprintf("evt_%d", i))
		e.Body = make([]byte, body)
		acceptEntry(t, s, e)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 4*size+4*body {
			t.Fatalf("the log has %d KB after %d events", info.Size()>>10, i)
		}
	}
}

func TestStatsCountEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	accept(t, s, "before")
	s.Close()
	s = open(t, path)
	accept(t, s, "evt_1")
	for want := int64(2); want < 5; want++ {
		stats, err := s.Stats(t.Context())
		if err != nil || stats.Events != want {
			t.Fatalf("Stats = %+v, %v; want %d events", stats, err, want)
		}
		accept(t, s, fmt.Sprintf("more_%d", want))
		accept(t, s, "evt_1")
	}
}

var ids = journal.NewIDs(0, 0)

func entry(key string) *journal.Record {
	return &journal.Record{ID: ids.Next(time.Now()), Hold: []string{"app"}, Event: &journal.Event{
		Source: "billing", Key: key, Digest: []byte(key),
		Body: []byte(key), Destinations: []string{"app"}, ReceivedAt: time.Now(),
	}}
}

// accept stores an event and returns the id that its key has.
func accept(t testing.TB, s journal.Store, key string) int64 {
	t.Helper()
	return acceptEntry(t, s, entry(key))
}

func acceptEntry(t testing.TB, s journal.Store, e *journal.Record) int64 {
	t.Helper()
	results, err := s.Accept(t.Context(), []*journal.Record{e}, time.Now(), time.Now().Add(time.Hour))
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	return results[0].ID
}
