package gateway

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

// A disk that is full is told from one of which nothing is known, and one that says more than a number holds is not full.
func TestFreeBytes(t *testing.T) {
	file := config.Store{Driver: config.SQLite, DSN: filepath.Join(t.TempDir(), "hookonce.db")}
	for _, tt := range []struct {
		store config.Store
		free  uint64
		err   error
		want  int64
	}{
		{file, 4096, nil, 4096}, {file, 0, nil, 1}, {file, math.MaxUint64, nil, math.MaxInt64}, {file, 4096, errors.New("no such folder"), 0},
		{config.Store{Driver: config.Postgres, DSN: file.DSN}, 4096, nil, 0},
	} {
		if got := freeBy(tt.store, func(string) (uint64, error) { return tt.free, tt.err }); got != tt.want {
			t.Errorf("%s with %d free (%v): %d, want %d", tt.store.Driver, tt.free, tt.err, got, tt.want)
		}
	}
}

// What is left is asked of the disk that the file is on, wherever links to it are: before the first start, too.
func TestFreeBytesBehindALink(t *testing.T) {
	real, links := t.TempDir(), t.TempDir()
	link := func(to, name string) string {
		t.Helper()
		name = filepath.Join(links, name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	real, err := filepath.EvalSymlinks(real) // a temporary folder may be behind one itself
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(real, "hookonce.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := link(filepath.Join(real, "absent.db"), "dangling.db")
	for path, want := range map[string]string{
		file:                           real,
		link(file, "hookonce.db"):      real,
		link(real, "data") + "/new.db": real,
		dangling:                       filepath.Dir(dangling),
	} {
		asked := ""
		freeBy(config.Store{Driver: config.SQLite, DSN: path}, func(folder string) (uint64, error) {
			asked = folder
			return 1, nil
		})
		if asked != want {
			t.Errorf("for %s the disk of %s is asked, want %s", path, asked, want)
		}
	}
}
