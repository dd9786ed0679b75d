package deliver

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// An address that this machine has no way to is not a passing shortage of ports: it counts as a failure,
// so that the delivery ends some day and the breaker learns of it.
func TestNoWayThereIsNoFaultOfOurs(t *testing.T) {
	for _, c := range []struct {
		address string
		errno   syscall.Errno
		ours    bool
	}{
		{"192.0.2.1", syscall.EADDRNOTAVAIL, true},
		{"2001:db8::1", syscall.EADDRNOTAVAIL, false},
		{"::1", syscall.EADDRNOTAVAIL, false},
		{"2001:db8::1", syscall.EMFILE, true},
		{"192.0.2.1", syscall.ECONNREFUSED, false},
	} {
		err := fmt.Errorf("attempt: %w", &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(c.address), Port: 80},
			Err: os.NewSyscallError("connect", c.errno),
		})
		if got := ourFault(err); got != c.ours {
			t.Errorf("%v is our fault: %v, want %v", err, got, c.ours)
		}
	}
}
