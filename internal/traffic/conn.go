package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Conn is a connection that carries one request after the other. It is not safe for concurrent use.
type Conn struct {
	net  net.Conn
	buf  []byte // what was read and not yet parsed
	done func() bool
}

// Open dials the target. Until the connection is closed, the end of ctx interrupts it.
func Open(ctx context.Context, t *Target) (*Conn, error) { return open(ctx, ctx, t) }

// open dials the target until the end of dialing. After that, ctx alone interrupts the connection.
func open(ctx, dialing context.Context, t *Target) (*Conn, error) {
	c, err := t.Dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.address, err)
	}
	interrupt := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	return &Conn{net: c, done: interrupt}, nil
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.done()
	return c.net.Close()
}

// Send writes part of a request, or all of it.
func (c *Conn) Send(b []byte) error {
	_, err := c.net.Write(b)
	return err
}

// Receive reads the next answer, which stays valid until the next call.
func (c *Conn) Receive() (Response, error) {
	eof := false
	for {
		r, n, err := Parse(c.buf, eof)
		if err != nil {
			return Response{}, err
		}
		if n > 0 {
			c.buf = c.buf[n:]
			return r, nil
		}
		if eof, err = c.fill(); err != nil {
			return Response{}, err
		}
	}
}

// fill reads more bytes and reports whether there will be none after them. A connection that ends
// before the first byte of an answer is an error of its own: the server gave none.
func (c *Conn) fill() (eof bool, err error) {
	chunk := make([]byte, 4096)
	n, err := c.net.Read(chunk)
	c.buf = append(c.buf, chunk[:n]...)
	if errors.Is(err, io.EOF) && len(c.buf) > 0 {
		return true, nil
	}
	return false, err
}

// HangUp sends one request and closes the connection without waiting for the answer, like a sender
// whose acknowledgement is lost.
func HangUp(ctx context.Context, t *Target, request []byte) error {
	c, err := Open(ctx, t)
	if err != nil {
		return err
	}
	defer c.Close()
	return cause(ctx, c.Send(request))
}

// cause names the end of ctx instead of the broken connection that it led to.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
