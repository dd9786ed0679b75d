package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockDatabase locks the database itself, by whatever name it is reached. On Linux flock(2) is apart from the locks of
// fcntl(2) that SQLite takes, on the file systems that [sqlitefile.Local] lets through.
func lockDatabase(f *os.File) error { return lockFile(f) }

// unlockDatabase gives that lock back.
func unlockDatabase(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
