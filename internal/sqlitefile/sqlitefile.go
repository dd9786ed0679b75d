// Package sqlitefile says whether a database in a file is in a place where it can be kept safely.
//
// SQLite keeps its write-ahead log beside the file, under the file's name with an ending. A file that can be
// reached by two names has two logs: who opens it by the other name sees an old state, and two processes that
// write so damage it (https://www.sqlite.org/howtocorrupt.html, 2.4 and 2.5).
package sqlitefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnsafe says that the file must be elsewhere, or be reached in another way.
var ErrUnsafe = errors.New("a database is not safe there")

// beside are the endings of what lies beside a file under its name: what SQLite keeps there, and the gateway's lock.
var beside = []string{"-wal", "-shm", "-journal", ".lock"}

// Check returns an error that wraps [ErrUnsafe], names the file and says what to do, if the file at path has several
// names (hard links) or is mounted by itself instead of with its folder, if that holds for what lies beside it, if its
// log is there without it, or if it was taken away from a process that has it open ([Taken]). Symbolic links to the file are followed, and a file that is not there yet is as good as one
// that is. What the operating system does not tell is not found: mounts are known on Linux, names on Unix.
func Check(path string) error { return check(path, mountPoints) }

func check(path string, mounts func() []string) error {
	name, err := Resolve(path)
	if err != nil {
		return nil // whoever opens it says so
	}
	if err := cmp.Or(Taken(name), orphaned(name)); err != nil {
		return err
	}
	points := mounts()
	for _, part := range append([]string{""}, beside...) {
		if err := single(name+part, points); err != nil {
			return err
		}
	}
	return nil
}

// single returns an error if what is at path has another name as well.
func single(path string, mounts []string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil || info.IsDir(): // whoever opens it says so
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: %w: it is a link, and must be a file of its own beside the database; remove the link if it leads to nothing of value", path, ErrUnsafe)
	case slices.Contains(mounts, path):
		return fmt.Errorf("%s: %w: it is mounted as a single file, and its write-ahead log stays behind when it is mounted elsewhere; "+
			"mount the folder that it is in instead, as with -v ./data:/data, and name the file in there", path, ErrUnsafe)
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("%s: %w: it has %d names (hard links), and its write-ahead log lies beside one of them; "+
			"find them with find / -xdev -samefile %s, and remove the others, or put a copy in its place", path, ErrUnsafe, n, path)
	}
	return nil
}

// orphaned returns an error if the log of a file is there and the file is not: SQLite would delete it.
func orphaned(name string) error {
	if info, err := os.Stat(name); err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	log, err := os.Stat(name + "-wal")
	if err != nil || log.Size() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: the file is not there or empty, and its write-ahead log is, with what was stored last; "+
		"put the file back to which %s-wal belongs, or move that away to begin anew", name, ErrUnsafe, filepath.Base(name))
}

// Local returns an error that wraps [ErrUnsafe] if the folder of the file at path is on a network file system: SQLite's log
// does not work over one (https://www.sqlite.org/wal.html), and on NFS the lock of a whole file, which keeps other gateways
// out, is in the way of SQLite's own (flock(2), "NFS details"). File systems are known on Linux.
func Local(path string) error {
	if kind, network, err := FileSystem(filepath.Dir(path)); err == nil && network {
		return fmt.Errorf("%s: %w: it is on a network file system (%s), whose locks SQLite cannot rely on; put it on a local disk, or use Postgres", path, ErrUnsafe, kind)
	}
	return nil
}

// Resolve returns the one name that the file at path has, whatever symbolic links lead to it. The file need not be
// there yet; then a link to it is an error that wraps [fs.ErrNotExist], as is a folder that is not there.
func Resolve(path string) (string, error) {
	name, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(path); there == nil {
			return "", err
		}
		var dir string
		if dir, err = filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			name = filepath.Join(dir, filepath.Base(path))
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// Name is [Resolve] for those who look at what lies at and beside the file, and tell people of it: path as they wrote it where no
// link leads elsewhere, or where that cannot be said. Whoever opens it then says what is wrong.
func Name(path string) string {
	name, err := Resolve(path)
	if whole, wrong := filepath.Abs(path); err != nil || wrong != nil || name == whole {
		return path
	}
	return name
}

// points reads the places of mounts from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)): the fifth field of
// each line, with blanks and backslashes in octal.
func points(mountinfo string) (all []string) {
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			all = append(all, plain.Replace(fields[4]))
		}
	}
	return all
}
