//go:build unix

package gateway

import (
	"net"
	"testing"
)

// Whether somebody waits is known without a descriptor for them, and there is no end to asking.
func TestWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	waits := waits(l)
	if waits() {
		t.Error("nobody came, and somebody waits")
	}
	c, err := net.Dial("tcp", l.Addr().String()) // the system takes the connection in
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if !waits() {
			t.Error("somebody waits, and that is not seen")
		}
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if waits() {
		t.Error("who was let in waits still")
	}
}
