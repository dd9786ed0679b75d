package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space returns how many bytes this user may still write to a folder's file system.
func Space(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// writable returns an error unless this user may write to the folder.
func writable(dir string) error { return unix.Access(dir, unix.W_OK) }
