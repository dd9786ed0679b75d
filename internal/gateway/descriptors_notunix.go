//go:build !unix

package gateway

import "net"

// descriptors returns zero: this system has no such limit.
func descriptors() int { return 0 }

// waits returns nil: nothing is asked that the system does not have.
func waits(net.Listener) func() bool { return nil }
