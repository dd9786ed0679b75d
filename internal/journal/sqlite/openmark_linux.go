package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// markName is an attribute of the database's file from when a store opens it until it is closed in order. It moves with the file
// and not with a backup that SQLite makes, and is no part of what other programs keep in the same database.
const markName = "user.hookonce.open"

// mark sets the attribute, where the file system has such.
func mark(f *os.File) { _ = unix.Fsetxattr(int(f.Fd()), markName, []byte("1"), 0) }

// unmark removes it.
func unmark(f *os.File) { _ = unix.Fremovexattr(int(f.Fd()), markName) }

// marked reports whether it is there.
func marked(f *os.File) bool {
	n, err := unix.Fgetxattr(int(f.Fd()), markName, nil)
	return err == nil && n > 0
}
