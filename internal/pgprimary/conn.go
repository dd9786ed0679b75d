package pgprimary

import (
	"net"
	"sync/atomic"
	"time"
)

// conn is a connection that knows since when an answer is waited for.
type conn struct {
	net.Conn
	finder *finder
	server string
	asked  atomic.Int64 // nanoseconds of Unix time; 0: everything is answered
	cut    atomic.Bool
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	c.asked.CompareAndSwap(0, time.Now().UnixNano())
	return c.Conn.Write(p)
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.asked.Store(0)
	}
	return n, err
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.finder.drop(c)
	return c.Conn.Close()
}

// waits returns for how long an answer is waited for.
func (c *conn) waits() time.Duration {
	asked := c.asked.Load()
	if asked == 0 {
		return 0
	}
	return time.Since(time.Unix(0, asked))
}

// leave cuts the connection. It stays on the list until whoever uses it closes it.
func (c *conn) leave() {
	if !c.cut.Swap(true) {
		_ = c.Conn.Close() // there is nobody to tell
	}
}
