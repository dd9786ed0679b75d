package throwaway

import "syscall"

// free returns how many bytes a file system has room for; 0: it is not there.
func free(path string) uint64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
