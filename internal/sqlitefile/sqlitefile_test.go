package sqlitefile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestCheck has a file for each way in which a database must not be reached, and for some in which it may.
func TestCheck(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names are known on Unix")
	}
	for name, tc := range map[string]struct {
		make func(t *testing.T, dir string) (mounts []string) // db is what is asked about
		want string                                           // empty: it may be opened
	}{
		"alone":     {func(t *testing.T, dir string) []string { write(t, dir, "db"); return []string{"/", dir} }, ""},
		"not there": {func(*testing.T, string) []string { return nil }, ""},
		"with all beside it": {func(t *testing.T, dir string) []string {
			write(t, dir, "db", "db-wal", "db-shm", "db.lock")
			return nil
		}, ""},
		"a link to it": {func(t *testing.T, dir string) []string {
			write(t, dir, "own")
			link(t, os.Symlink, dir, "own", "db")
			return nil
		}, ""},
		"mounted": {func(t *testing.T, dir string) []string { write(t, dir, "db"); return mounted(dir, "db") }, "mount the folder"},
		"mounted behind links": {func(t *testing.T, dir string) []string {
			write(t, dir, "own")
			link(t, os.Symlink, dir, "own", "db")
			return mounted(dir, "own")
		}, "mount the folder"},
		"its log is mounted":  {func(t *testing.T, dir string) []string { write(t, dir, "db", "db-wal"); return mounted(dir, "db-wal") }, "db-wal"},
		"its lock is mounted": {func(t *testing.T, dir string) []string { write(t, dir, "db.lock"); return mounted(dir, "db.lock") }, "db.lock"},
		"two names": {func(t *testing.T, dir string) []string {
			write(t, dir, "db")
			link(t, os.Link, dir, "db", "other")
			return nil
		}, "2 names"},
		"two names of its log": {func(t *testing.T, dir string) []string {
			write(t, dir, "db", "db-wal")
			link(t, os.Link, dir, "db-wal", "other")
			return nil
		}, "db-wal"},
		"two names of the lock": {func(t *testing.T, dir string) []string {
			write(t, dir, "db", "db.lock")
			link(t, os.Link, dir, "db.lock", "other")
			return nil
		}, "db.lock"},
		"its log is a link": {func(t *testing.T, dir string) []string {
			write(t, dir, "db", "log")
			link(t, os.Symlink, dir, "log", "db-wal")
			return nil
		}, "it is a link"},
		"its log is a link to nothing": {func(t *testing.T, dir string) []string {
			write(t, dir, "db")
			link(t, os.Symlink, dir, "log", "db-wal")
			return nil
		}, "it is a link"},
		"a log without it": {func(t *testing.T, dir string) []string { write(t, dir, "db-wal"); return nil }, "put the file back"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			mounts := tc.make(t, dir)
			err = check(filepath.Join(dir, "db"), func() []string { return mounts })
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir)):
				t.Errorf("error %v, want one that names the file and %q", err, tc.want)
			}
		})
	}
}

func mounted(dir, name string) []string { return []string{"/", filepath.Join(dir, name)} }

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, make func(old, name string) error, dir, old, name string) {
	t.Helper()
	if err := make(filepath.Join(dir, old), filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyFileWithALog: SQLite takes an empty file for a new one, and deletes the log.
func TestEmptyFileWithALog(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "db-wal")
	if err := os.WriteFile(filepath.Join(dir, "db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(filepath.Join(dir, "db")); !errors.Is(err, ErrUnsafe) {
		t.Errorf("error %v", err)
	}
}

// TestName: people read the name that they wrote, unless the file is elsewhere.
func TestName(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	write(t, dir, "db")
	link(t, os.Symlink, dir, "db", "linked")
	link(t, os.Symlink, dir, "absent", "dangling")
	for path, want := range map[string]string{
		"db": "db", "new": "new", "no/folder": "no/folder", "dangling": "dangling", filepath.Join(dir, "db"): filepath.Join(dir, "db"),
		"linked": filepath.Join(dir, "db"),
	} {
		if got := Name(path); got != want {
			t.Errorf("Name(%q) = %q, want %q", path, got, want)
		}
	}
}

// TestMountPoints reads what Linux writes.
func TestMountPoints(t *testing.T) {
	const text = `21 27 0:20 / /proc rw,nosuid - proc proc rw
36 35 98:0 /data/j.db /data/my\040own\134j.db rw,noatime master:1 - ext3 /dev/root rw,errors=continue

broken
`
	if got, want := points(text), []string{"/proc", `/data/my own\j.db`}; !slices.Equal(got, want) {
		t.Errorf("mount points %q, want %q", got, want)
	}
}
