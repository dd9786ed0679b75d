//go:build unix

package gateway

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptors returns how many files and connections the process may have open. The runtime has raised that to the hard limit:
// https://go.dev/doc/go1.19#osospkgos. Zero: nobody knows.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30))
}

// waits returns what reports whether somebody waits to be accepted at a listener, without a descriptor for them. Nil: that cannot
// be known.
func waits(l net.Listener) func() bool {
	own, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := own.SyscallConn()
	if err != nil {
		return nil
	}
	return func() bool {
		is := true // unless the system says no
		_ = raw.Control(func(fd uintptr) {
			one := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(one, 0); err == nil {
				is = n > 0
			}
		})
		return is
	}
}
