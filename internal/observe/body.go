package observe

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// room is memory that is shared, in bytes.
type room struct{ left atomic.Int64 }

func newRoom(bytes int64) *room {
	r := &room{}
	r.left.Store(bytes)
	return r
}

// take sets n bytes aside, unless there are fewer.
func (r *room) take(n int64) bool {
	if r.left.Add(-n) >= 0 {
		return true
	}
	r.left.Add(n)
	return false
}

func (r *room) give(n int64) { r.left.Add(n) }

// body keeps a copy of what is read through it. The transport may read on after the answer is there.
type body struct {
	io.ReadCloser
	room   *room
	limit  int64
	before func() // is called before each read: gives the sender time for it
	ended  func() // is called at the end of the body, before leave returns: then the socket is the server's

	reading sync.Mutex // keeps the copy in order
	left    bool       // the server has the rest

	mu     sync.Mutex
	data   []byte
	unread string // why there is no copy
	eof    bool
	closed bool
	err    error // the sender's
}

func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.left {
		return 0, http.ErrBodyReadAfterClose
	}
	b.before()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(p[:n])
	switch {
	case b.closed || b.eof || b.err != nil: // what comes after the end says nothing
	case err == io.EOF:
		b.eof = true
	case !errors.Is(err, http.ErrBodyReadAfterClose): // which is our server's, that has given up the rest
		b.err = err
	}
	return n, err
}

// drain reads what nobody else will, as far as it is worth a copy.
func (b *body) drain() {
	p := make([]byte, 4<<10)
	for {
		b.mu.Lock()
		over := b.eof || b.err != nil || b.unread != ""
		b.mu.Unlock()
		if over {
			return
		}
		if _, err := b.Read(p); err != nil {
			return
		}
	}
}

// finished reports whether there is nothing more to read.
func (b *body) finished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eof || b.err != nil
}

// broke reports whether the sender broke off.
func (b *body) broke() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// leave waits for a read that is under way, and lets no other begin.
func (b *body) leave() {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.left = true
}

// keep adds p to the copy, or gives the copy up.
func (b *body) keep(p []byte) {
	switch n := int64(len(b.data) + len(p)); {
	case b.unread != "" || b.closed || len(p) == 0:
	case n > b.limit:
		b.drop(ReasonTooLarge)
	case n > int64(cap(b.data)) && !b.grow(n):
		b.drop(ReasonMemory)
	default:
		b.data = append(b.data, p...)
	}
}

// grow makes room for n bytes. The memory of both copies is taken while both are there.
func (b *body) grow(n int64) bool {
	size := min(max(n, 4<<10, 2*int64(cap(b.data))), max(b.limit, n))
	if !b.room.take(size) {
		return false
	}
	larger := make([]byte, len(b.data), size)
	copy(larger, b.data)
	b.room.give(int64(cap(b.data)))
	b.data = larger
	return true
}

func (b *body) drop(reason string) {
	b.room.give(int64(cap(b.data)))
	b.data, b.unread = nil, reason
}

// take ends the copy and returns it, or why there is none. What it returns is for the caller to give back to the
// room. announced is the length of the body according to its sender, negative if it did not say.
func (b *body) take(announced int64) (data []byte, unread string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	switch complete := b.eof || announced >= 0 && int64(len(b.data)) == announced; {
	case b.unread == "" && announced > b.limit:
		b.drop(ReasonTooLarge)
	case b.unread == "" && !complete:
		b.drop(ReasonPartial)
	}
	data, b.data = b.data, nil
	return data, b.unread, b.err
}
