//go:build unix

package gateway

import "syscall"

// descriptors returns how many files and connections the process may have open. The runtime has raised that to the hard limit:
// https://go.dev/doc/go1.19#osospkgos. Zero: nobody knows.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30))
}
