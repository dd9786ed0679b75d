package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// openedFile, in the environment, makes the test binary a process that opens that file, and says on its standard output why
// it could not.
const openedFile = "HOOKONCE_TEST_OPENER"

func opener(path string) {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("opened")
	s.Close()
}

// openElsewhere opens the file in another process and returns what that says.
func openElsewhere(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), openedFile+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestOneStoreOfOneFile opens the file of a running store by names under which there is another lock beside it.
func TestOneStoreOfOneFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "journal.db"), filepath.Join(dir, "other.db")
	first := open(t, path)
	accept(t, first, "evt_1")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other} {
		if said := openElsewhere(t, name); !strings.Contains(said, "2 names") && !strings.Contains(said, "in use") {
			t.Errorf("%s, which has two names: %s", name, said)
		}
	}
	accept(t, first, "evt_2")
	if err := os.Remove(path); err != nil { // so that it has one name again, and no log beside it
		t.Fatal(err)
	}
	if said := openElsewhere(t, other); !strings.Contains(said, sqlite.ErrInUse.Error()) {
		t.Errorf("a file that is open by another name: %s", said)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if said := openElsewhere(t, other); said != "opened\n" {
		t.Errorf("after the first store: %s", said)
	}
}

// TestUnsafeFilesAreRefused after a crash as well, when nobody has a lock.
func TestUnsafeFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "journal.db"), filepath.Join(dir, "other.db")
	acknowledged := map[string]int64{}
	kill(t, path, 20, acknowledged)
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other} {
		if _, err := sqlite.Open(t.Context(), name, sqlite.Options{}); !errors.Is(err, sqlitefile.ErrUnsafe) {
			t.Errorf("%s: %v, want ErrUnsafe", name, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlitefile.ErrUnsafe) {
		t.Errorf("a log without its file: %v, want ErrUnsafe", err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	compare(t, open(t, path), acknowledged)
}

// chronicle is a log that tests wait for.
type chronicle chan slog.Record

func (c chronicle) Enabled(context.Context, slog.Level) bool { return true }
func (c chronicle) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c chronicle) WithGroup(string) slog.Handler            { return c }
func (c chronicle) Handle(_ context.Context, r slog.Record) error {
	c <- r
	return nil
}

// await returns the next line, which must be of that level and hold that text.
func (c chronicle) await(t *testing.T, level slog.Level, text string) slog.Record {
	t.Helper()
	select {
	case r := <-c:
		if r.Level != level || !strings.Contains(r.Message, text) {
			t.Fatalf("logged %v %q, want %v ...%s...", r.Level, r.Message, level, text)
		}
		return r
	case <-time.After(time.Minute):
		t.Fatalf("nothing was logged of %s", text)
	}
	panic("unreachable")
}

func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// TestFileTakenAway: whatever happens to the file or to what is beside it, nothing is acknowledged after that, until the store
// is opened again, and the store touches nothing that is not its own.
func TestFileTakenAway(t *testing.T) {
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	foreign := func(t *testing.T, path string) {
		t.Helper()
		rename(t, path, path+".away")
		if err := os.WriteFile(path, []byte("somebody else's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		away  func(t *testing.T, path string)
		back  func(t *testing.T, path string) // so that all is as it was; nil: it cannot be
		kept  string                          // the ending of a file that must be there after Close, with what it held
		aside bool                            // the log must not be where it was, because the file there is another
	}{
		"deleted":              {away: func(t *testing.T, path string) { remove(t, path) }},
		"moved":                {away: func(t *testing.T, path string) { rename(t, path, path+".away") }, back: func(t *testing.T, path string) { rename(t, path+".away", path) }},
		"replaced":             {away: foreign, aside: true},
		"emptied":              {away: func(t *testing.T, path string) { truncate(t, path) }, aside: true},
		"replaced by a link":   {away: func(t *testing.T, path string) { rename(t, path, path+".away"); symlink(t, path+".away", path) }},
		"its log deleted":      {away: func(t *testing.T, path string) { remove(t, path+"-wal") }},
		"its log replaced":     {away: func(t *testing.T, path string) { foreign(t, path+"-wal") }, kept: "-wal"},
		"its log moved":        {away: func(t *testing.T, path string) { rename(t, path+"-wal", path+".away") }, back: func(t *testing.T, path string) { rename(t, path+".away", path+"-wal") }},
		"its index deleted":    {away: func(t *testing.T, path string) { remove(t, path+"-shm") }},
		"its folder moved":     {away: func(t *testing.T, path string) { rename(t, filepath.Dir(path), filepath.Dir(path)+".away") }},
		"its folder is a file": {away: func(t *testing.T, path string) { foreign(t, filepath.Dir(path)) }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "journal.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			lines, registry := make(chronicle, 100), prometheus.NewRegistry()
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(lines), Registerer: registry})
			if err != nil {
				t.Fatal(err)
			}
			accept(t, s, "before")
			if gone := gauge(t, registry, "hookonce_journal_file_gone"); gone != 0 {
				t.Errorf("hookonce_journal_file_gone is %v before", gone)
			}
			refused := func(when string) {
				t.Helper()
				if _, err := s.Accept(t.Context(), []*journal.Record{entry("after")}, time.Now(), time.Now().Add(time.Hour)); !errors.Is(err, sqlite.ErrGone) {
					t.Errorf("%s: accepting: %v, want ErrGone", when, err)
				}
				if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrGone) {
					t.Errorf("%s: Ping: %v, want ErrGone", when, err)
				}
				if err := s.Standing(); !errors.Is(err, sqlite.ErrGone) {
					t.Errorf("%s: Standing: %v, want ErrGone", when, err)
				}
			}
			tc.away(t, path)
			if name == "its index deleted" { // no commit looks for that, somebody else does every second
				lines.await(t, slog.LevelError, "taken away")
				refused("within a second")
			} else {
				refused("at once")
				lines.await(t, slog.LevelError, "taken away")
			}
			if gone := gauge(t, registry, "hookonce_journal_file_gone"); gone != 1 {
				t.Errorf("hookonce_journal_file_gone is %v", gone)
			}
			if db, err := s.DB(); err != nil {
				t.Error(err)
			} else if err := db.PingContext(t.Context()); !errors.Is(err, sqlite.ErrGone) {
				t.Errorf("another connection: %v, want ErrGone", err)
			}
			if tc.back != nil {
				tc.back(t, path)
				refused("when it is back")
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if asides, _ := filepath.Glob(path + "-wal.[0-9]*"); tc.aside != (len(asides) > 0) {
				t.Errorf("logs with another name: %q", asides)
			} else if tc.aside {
				lines.await(t, slog.LevelWarn, "another name")
				if _, err := os.Lstat(path + "-wal"); err == nil {
					t.Error("the log lies beside another file than its own")
				}
			}
			if len(lines) > 0 {
				t.Errorf("logged as well: %v", <-lines)
			}
			if name == "replaced" || tc.kept != "" {
				if text, err := os.ReadFile(path + tc.kept); err != nil || string(text) != "somebody else's" {
					t.Errorf("what is at %s%s now: %q, %v", path, tc.kept, text, err)
				}
			}
			if tc.back != nil {
				s := open(t, path)
				if res, err := s.Accept(t.Context(), []*journal.Record{entry("before")}, time.Now(), time.Now().Add(time.Hour)); err != nil || res[0].Status != journal.Duplicate {
					t.Errorf("after a restart: %v, %v", res, err)
				}
			}
		})
	}
}

// TestFileWrittenOver: the files are written over where they are, as cp does with a backup, which leaves all names as they were.
func TestFileWrittenOver(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"by an older state": func(t *testing.T, path string) {
			older, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, older[:len(older)/2], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"its log is emptied": func(t *testing.T, path string) { truncate(t, path+"-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{LogSize: 16 << 20}) // so that no checkpoint of its own is under way
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := range 100 {
				e := entry(fmt.Sprint("evt_", i))
				e.Body = make([]byte, 16<<10)
				acceptEntry(t, s, e)
			}
			emptyLog(t, beside(t, path))
			accept(t, s, "in the log")
			harm(t, path)
			harmed, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := s.Accept(t.Context(), []*journal.Record{entry("after")}, time.Now(), time.Now().Add(time.Hour)); !errors.Is(err, sqlite.ErrGone) {
					t.Errorf("accepting: %v, want ErrGone", err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, harmed) {
				t.Errorf("the store wrote into the file that was there (%v)", err)
			}
			if _, err := os.Lstat(path + "-wal"); err == nil {
				t.Error("the log lies beside another file than its own")
			}
		})
	}
}

// TestLogEmptiedIsNoticedByTheNextCommit: it is not left to the look once a second.
func TestLogEmptiedIsNoticedByTheNextCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	accept(t, s, "before") // the log is far from being copied
	truncate(t, path+"-wal")
	if _, err := s.Accept(t.Context(), []*journal.Record{entry("after")}, time.Now(), time.Now().Add(time.Hour)); !errors.Is(err, sqlite.ErrGone) {
		t.Errorf("accepting: %v, want ErrGone", err)
	}
}

// TestUpkeepFromOutside: what people do to the file with SQLite itself, while the store runs, makes it and its log shorter as well,
// and takes nothing away.
func TestUpkeepFromOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{LogSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db := beside(t, path)
	for round := range 3 {
		for i := range 50 {
			e := entry(fmt.Sprint("evt_", round, "_", i))
			e.Body = make([]byte, 16<<10)
			acceptEntry(t, s, e)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"DELETE FROM hookonce_bodies", "VACUUM"} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		emptyLog(t, db)
		if after, err := os.Stat(path); err != nil || after.Size() >= before.Size() {
			t.Fatalf("the file has %d bytes of %d (%v): it was to become smaller", after.Size(), before.Size(), err)
		}
		accept(t, s, fmt.Sprint("after_", round))
	}
}

// emptyLog copies all of the log into the file. The store may make a checkpoint at that moment, too.
func emptyLog(t *testing.T, db *sql.DB) {
	t.Helper()
	for busy, log, copied := 1, 0, 0; busy != 0; {
		if err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &copied); err != nil {
			t.Fatal(err)
		}
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestFileTakenAwayWhileNothingHappens is noticed all the same.
func TestFileTakenAwayWhileNothingHappens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	lines := make(chronicle, 100)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(lines)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	const warning = "do not stop or restart it yet"
	lines.await(t, slog.LevelError, warning)
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrInUse) || !strings.Contains(fmt.Sprint(err), warning) {
		t.Errorf("opening what is not there any more: %v", err)
	}
}

// TestLogDeletedLosesNothingAcknowledged: what was committed into a log that was deleted is copied into the file when the store
// is closed in order.
func TestLogDeletedLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	id := accept(t, s, "evt_1")
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrGone) {
		t.Errorf("Ping: %v, want ErrGone", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := accept(t, open(t, path), "evt_1"); again != id {
		t.Errorf("the event is %d now, and was acknowledged as %d", again, id)
	}
}

// A log that was put aside when its file had been taken away is told of at every start, until somebody looks after it.
func TestLogsPutAsideAreToldOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal[1].db")
	aside := path + "-wal.17"
	for _, there := range []bool{false, true} {
		if there {
			if err := os.WriteFile(aside, []byte("a log"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		lines := make(chronicle, 100)
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(lines)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if there {
			lines.await(t, slog.LevelWarn, "put aside")
		}
		if len(lines) > 0 {
			t.Errorf("a log put aside: %v; logged as well: %v", there, <-lines)
		}
	}
	if _, err := os.Stat(aside); err != nil {
		t.Error(err)
	}
}
