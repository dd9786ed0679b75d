//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks f until it is closed or the process ends, or fails at once.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// closingUnlocks says that to close any descriptor of a file drops the locks that SQLite has on it in this process.
const closingUnlocks = true
