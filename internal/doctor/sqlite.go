package doctor

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // driver sqlite

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// examineSQLite looks at the file, and into it if it is there. What lies beside it lies beside the file itself, and not beside
// a link to it.
func examineSQLite(ctx context.Context, p Patient) []Finding {
	path := sqlitefile.Name(p.Config.Store.DSN)
	if found := run(ctx, path, []check[string]{{"file", taken}}); len(found) > 0 {
		return found // what else is there is of no matter until then, and not ours to open
	}
	found := run(ctx, path, fileChecks())
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || sqlitefile.Check(path) != nil {
		return found
	}
	s, err := openSQLite(path, p)
	if err != nil {
		return append(found, Finding{Check: "store", Level: Fault, Text: oneLine(err), Advice: "correct --store"})
	}
	defer s.db.Close()
	return append(append(found, run(ctx, s, sqliteChecks())...), run(ctx, s, tableChecks())...)
}

// openSQLite opens the file for reading only.
func openSQLite(path string, p Patient) (*store, error) {
	name := "" // of a gateway's tables, which has no other; an application's may have
	if !p.serves() {
		name = p.Config.Schema
	}
	prefix, err := ddl.Prefix(ddl.SQLite, name)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(path)+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	return &store{db: db, dialect: ddl.SQLite, prefix: prefix, now: p.Now, placeholder: "?1", serves: p.serves(), creates: true, sources: p.sources(), names: p.destinations(),
		at: func(t time.Time) any { return t.UnixMicro() }}, err
}

// fileChecks look at the file from outside, by its path.
func fileChecks() []check[string] {
	return []check[string]{
		{"file", exists},
		{"place", fits},
		{"permissions", permissions},
		{"file system", fileSystem},
		{"disk", disk},
		{"log", logFile},
	}
}

// taken finds a file that a gateway goes on with although it is not there any more.
func taken(_ context.Context, path string) ([]Finding, error) {
	if err := sqlitefile.Taken(path); err != nil {
		return one(bad("save what that process has first", "%v", err))
	}
	return nil, nil
}

func exists(_ context.Context, path string) ([]Finding, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return one(bad("create the folder, or correct --store", "%s is not there, nor is its folder", path))
		}
		return one(doubt("nothing, if this is the first start; else correct --store, or, if a gateway runs that has it open, do not restart that: docs/operating.md, \"When the file is taken away\"",
			"%s is not there yet; %s", path, notStarted(true)))
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return one(bad("correct --store", "%s is no file", path))
	}
	return one(good("%s, %d MiB", path, info.Size()>>20))
}

// missing reports whether the file is not there yet, so that nothing can be said of it.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// fits finds files that have a second name, under which their log is not found.
func fits(_ context.Context, path string) ([]Finding, error) {
	if err := sqlitefile.Check(path); err != nil {
		return one(bad("do that before the next start: until then this file is not opened", "%v", err))
	}
	if missing(path) {
		return nil, nil
	}
	return one(good("the file has one name, and its log lies beside it"))
}

// permissions finds files that others can read: they are full of other people's data.
func permissions(_ context.Context, path string) (found []Finding, _ error) {
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			found = append(found, doubt("chmod 600 "+name, "other users of this machine can open %s, with every webhook in it (%v)", name, info.Mode().Perm()))
		}
	}
	dir := filepath.Dir(path)
	if err := writable(dir); err != nil {
		found = append(found, bad("give this user the right to write to the folder: SQLite keeps its log there", "%s: %v", dir, err))
	}
	if len(found) == 0 && missing(path) {
		return one(good("this user can write to the folder"))
	}
	if len(found) == 0 {
		found = append(found, good("only its owner can open it, and this user can write to its folder"))
	}
	return found, nil
}

func fileSystem(_ context.Context, path string) ([]Finding, error) {
	kind, network, err := sqlitefile.FileSystem(filepath.Dir(path))
	switch {
	case err != nil:
		return nil, err
	case network:
		return one(bad("put the file on a local disk, or use Postgres", "the file is on a network file system (%s), whose locks SQLite cannot rely on: the file gets damaged, and the gateway does not start", kind))
	}
	return one(good("%s", kind))
}

// The free space below which the disk is nearly full, and full.
const (
	littleSpace = 1 << 30
	noSpace     = 128 << 20
)

func disk(_ context.Context, path string) ([]Finding, error) {
	free, err := Space(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return one(room(free))
}

func room(free uint64) Finding {
	const advice = "make room: when the disk is full events are refused"
	switch mib := free >> 20; {
	case free < noSpace:
		return bad(advice, "%d MiB are free", mib)
	case free < littleSpace:
		return doubt(advice, "%d MiB are free", mib)
	default:
		return good("%d MiB are free", mib)
	}
}

// longLog is how large the write-ahead log is when somebody keeps it from being copied back: the gateway keeps it below
// 16 MiB otherwise, and says so in its log from this size on.
const longLog = 64 << 20

// logFile finds a write-ahead log that grows because somebody reads an old state of the file.
func logFile(_ context.Context, path string) ([]Finding, error) {
	info, err := os.Stat(path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist) && missing(path):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return one(good("there is no write-ahead log at the moment"))
	case err != nil:
		return nil, err
	case info.Size() > longLog:
		return one(doubt("find who has the file open for long (fuser -v "+path+") and end that: a query, a backup, a forgotten shell; the running gateway shrinks the log then",
			"the write-ahead log has %d MiB: somebody reads an old state of the file, and it grows until they stop", info.Size()>>20))
	}
	return one(good("the write-ahead log has %d MiB", info.Size()>>20))
}

// sqliteChecks look into the file.
func sqliteChecks() []check[*store] {
	return []check[*store]{{"journal mode", journalMode}}
}

func journalMode(ctx context.Context, s *store) ([]Finding, error) {
	var mode string
	if err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" {
		return one(doubt("PRAGMA journal_mode = WAL, once; the gateway does so by itself", "it is %s: readers and writers wait for each other, and commits take longer", mode))
	}
	return one(good("write-ahead log"))
}
