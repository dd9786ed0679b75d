//go:build unix

package sqlitefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTaken: a file that is not there any more, and that a process goes on with, is told from one that was never there and
// from one that was put in the place of another while nobody had it open.
func TestTaken(t *testing.T) {
	rename := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		after         func(t *testing.T, path string)
		closed, early bool // nobody holds the lock; or its holder has opened nothing yet
		taken         bool
	}{
		"in its place":            {after: func(*testing.T, string) {}},
		"deleted":                 {after: func(t *testing.T, path string) { remove(t, path) }, taken: true},
		"moved":                   {after: rename, taken: true},
		"replaced":                {after: func(t *testing.T, path string) { rename(t, path); write(t, filepath.Dir(path), "db") }, taken: true},
		"written over":            {after: func(t *testing.T, path string) { write(t, filepath.Dir(path), "db") }},
		"deleted, and its lock":   {after: func(t *testing.T, path string) { remove(t, path); remove(t, path+".lock") }},
		"deleted while closed":    {after: func(t *testing.T, path string) { remove(t, path) }, closed: true},
		"replaced while closed":   {after: func(t *testing.T, path string) { rename(t, path); write(t, filepath.Dir(path), "db") }, closed: true},
		"not there at its making": {after: func(t *testing.T, path string) { remove(t, path) }, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "db")
			write(t, dir, "db", "db.lock")
			lock, err := os.OpenFile(path+".lock", os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				t.Fatal(err)
			}
			Sign(lock, nil)
			if !tc.early {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				Sign(lock, info)
			}
			if got, want := Holder(path), fmt.Sprint(os.Getpid()); got != want {
				t.Errorf("process %q has it, want %q", got, want)
			}
			if tc.closed {
				lock.Close()
			}
			tc.after(t, path)
			for _, look := range []func(string) error{Taken, Check} {
				switch err := look(path); {
				case !tc.taken && err != nil:
					t.Errorf("it is told to be taken away: %v", err)
				case tc.taken && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), fmt.Sprintf("process %d has the file open", os.Getpid())) || !strings.Contains(err.Error(), Keep)):
					t.Errorf("error %v, want one that names the process and says what to do", err)
				}
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
