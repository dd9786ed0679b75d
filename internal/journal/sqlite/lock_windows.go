package sqlite

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks f until it is closed or the process ends, or fails at once. The locked byte lies
// beyond the content, which others may read.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
}

const closingUnlocks = false
