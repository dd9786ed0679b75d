//go:build !linux

package sqlite

import "os"

// lockDatabase does nothing: here a lock of the whole file would be in the way of SQLite's own. The lock beside the file
// has to do, and a file with several names is refused.
func lockDatabase(*os.File) error { return nil }

func unlockDatabase(*os.File) error { return nil }
