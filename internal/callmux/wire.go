// Package callmux carries many calls at once over one connection between two that trust each other. What is to be said while
// a write is under way goes out with the next one, so that a call costs a part of a write and of a read on each side, and
// nobody waits for a neighbour. It is for calls that are answered once; what a call means is its users' matter.
//
// A frame is the length of the rest (4 bytes, most significant first), a kind (1), the number of the call (4), and a payload.
//
// Bounds: a call of up to [MaxShared] bytes shares its connection, a larger one has one of its own, and an answer goes out in
// parts of [maxPart] bytes that those of others come between. So what a call waits for on the wire is at most what is queued
// ahead of it there, [maxQueue] and a frame. A connection that says nothing for [silence] is given up. One that takes longer
// than [arrival] for a frame is ended, and its buffer grows with what has come.
package callmux

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of frames.
const (
	kindCall    = 1 + iota // the payload begins with the time that is left for it, in milliseconds (uvarint), and with who makes it, behind the length of that (uvarint)
	kindPart               // of an answer that is not complete with it
	kindAnswer             // the last part of an answer, or all of it
	kindCrowded            // the call was not taken: there is no memory for it
	kindPing
	kindPong
	kindClosing // no new calls are to come; those under way are answered
)

// Bounds of frames and queues, in bytes.
const (
	// MaxShared is how long a call is at most that shares its connection with others.
	MaxShared = 128 << 10
	maxPart   = 32 << 10
	maxQueue  = 256 << 10
	frameHead = 9
	readSize  = 32 << 10 // of what is read ahead
)

// How often a connection is asked whether it is alive when it says nothing, and when it is given up.
const (
	look      = time.Second
	pingAfter = 2 * time.Second
	suspect   = 4 * time.Second // for which it must not have been silent if it is to carry new calls
	silence   = 10 * time.Second
	// stalled is how long one write of at most 64 KiB may take.
	stalled = 10 * time.Second
)

// arrival is how long a frame of n bytes may take to come.
func arrival(n int) time.Duration { return 10*time.Second + time.Duration(n>>20)*time.Second }

// ErrBroken wraps why a connection ended before a call on it was answered. The call may have been carried out.
var ErrBroken = errors.New("callmux: the connection ended before the answer")

// wire is one end of a connection.
type wire struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader
	wake chan struct{} // something is to be written
	gone chan struct{} // closed when the connection has ended
	over func()        // is called then; nil: nobody wants to know
	end  sync.Once
	err  error           // why; read after gone is closed
	top  [frameHead]byte // the beginning of the frame that is being read
	base time.Time       // from which seen counts
	seen atomic.Int64    // when it was alive last

	mu      sync.Mutex
	pending []byte
	writing bool          // what was pending
	large   [][]byte      // behind pending
	drained chan struct{} // closed when pending was taken; nil if nobody waits
}

func newWire(conn io.ReadWriteCloser, in *bufio.Reader) *wire {
	w := &wire{conn: conn, in: in, wake: make(chan struct{}, 1), gone: make(chan struct{}), base: time.Now()}
	w.sign()
	return w
}

// sign notes that the connection is alive.
func (w *wire) sign() { w.seen.Store(int64(time.Since(w.base))) }

// quiet is for how long nothing said that it is.
func (w *wire) quiet() time.Duration { return time.Since(w.base) - time.Duration(w.seen.Load()) }

// close ends the connection, for the first reason that is given.
func (w *wire) close(cause error) {
	w.end.Do(func() {
		w.err = fmt.Errorf("%w: %w", ErrBroken, cause)
		close(w.gone)
		if w.over != nil {
			w.over()
		}
		_ = w.conn.Close() // which may take a moment
	})
}

// frame appends the beginning of a frame with a payload of n bytes.
func frame(b []byte, kind byte, id uint32, n int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(n+frameHead-4))
	return binary.BigEndian.AppendUint32(append(b, kind), id)
}

// send queues a frame whose payload begins with first, and waits while too much is queued. A payload of more than [MaxShared]
// behind that is not copied and must not be changed any more.
func (w *wire) send(ctx context.Context, kind byte, id uint32, first []byte, payload ...[]byte) error {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	w.mu.Lock()
	for len(w.pending) >= maxQueue || len(w.large) > 0 {
		if w.drained == nil {
			w.drained = make(chan struct{})
		}
		drained := w.drained
		w.mu.Unlock()
		select {
		case <-drained:
		case <-w.gone:
			return w.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.mu.Lock()
	}
	w.pending = append(frame(w.pending, kind, id, len(first)+n), first...)
	if n <= MaxShared {
		for _, p := range payload {
			w.pending = append(w.pending, p...)
		}
	} else {
		w.large = slices.Clone(payload) // or the list of parts of every call would be in the heap
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-w.gone:
		return w.err
	default:
		return nil
	}
}

// write writes what is queued until the connection ends. A large payload that is taken says that the connection is alive, and so
// does all else where progress counts; a ping alone must not.
func (w *wire) write(progress bool) {
	var buf []byte
	watch := time.AfterFunc(time.Hour, func() { w.close(errors.New("the other side takes nothing")) })
	defer watch.Stop()
	out := func(p []byte, progress bool) bool {
		for len(p) > 0 {
			n := min(len(p), 64<<10)
			watch.Reset(stalled)
			if _, err := w.conn.Write(p[:n]); err != nil {
				w.close(err)
				return false
			}
			if progress {
				w.sign()
			}
			p = p[n:]
		}
		return true
	}
	for {
		select {
		case <-w.wake:
		case <-w.gone:
			return
		}
		for {
			runtime.Gosched() // who is about to say something says it with this write
			w.mu.Lock()
			next, large := w.pending, w.large
			w.writing = len(next) > 0
			if w.pending, w.large = buf[:0], nil; cap(buf) > 2*maxQueue {
				w.pending = nil
			}
			if w.drained != nil {
				close(w.drained)
				w.drained = nil
			}
			w.mu.Unlock()
			buf = next
			if len(next) == 0 {
				break
			}
			if !out(next, progress) {
				return
			}
			for _, p := range large {
				if !out(p, true) {
					return
				}
			}
			watch.Reset(time.Hour)
		}
	}
}

// written reports whether nothing is to be written, or being written.
func (w *wire) written() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0 && !w.writing
}

// head reads the beginning of a frame.
func (w *wire) head() (kind byte, id uint32, n int, err error) {
	h, came := w.top[:], w.in.Buffered()
	if _, err := io.ReadFull(w.in, h); err != nil {
		return 0, 0, 0, err
	}
	if came < len(h) {
		w.sign()
	}
	n = int(binary.BigEndian.Uint32(h)) - (frameHead - 4)
	if n < 0 {
		return 0, 0, 0, errors.New("a frame that is shorter than its beginning")
	}
	return h[4], binary.BigEndian.Uint32(h[5:]), n, nil
}

// maxWho is how many bytes of the name of whoever makes a call are told.
const maxWho = 255

// callHead reads the beginning of a call of n bytes: the time that is left for it, who makes it, which is good until something else
// is read, and how many bytes are still to come.
func (w *wire) callHead(n int) (left time.Duration, who []byte, rest int, err error) {
	if w.in.Buffered() < min(n, 2*binary.MaxVarintLen64+maxWho) {
		late := time.AfterFunc(arrival(0), func() { w.close(errors.New("the beginning of a call does not come")) })
		defer late.Stop()
	}
	var numbers [2]uint64
	for i := range numbers {
		p, err := w.in.Peek(min(n, 1))
		for err == nil && len(p) > 0 && p[len(p)-1] >= 0x80 && len(p) < min(n, binary.MaxVarintLen64) {
			p, err = w.in.Peek(len(p) + 1)
		}
		if err != nil {
			return 0, nil, 0, err
		}
		number, size := binary.Uvarint(p)
		if size <= 0 {
			return 0, nil, 0, errors.New("a call that does not say for how long, or whose it is")
		}
		_, _ = w.in.Discard(size)
		numbers[i], n = number, n-size
	}
	if numbers[1] > uint64(min(n, maxWho)) {
		return 0, nil, 0, errors.New("a call that says nothing of whose it is")
	}
	length := int(numbers[1])
	if who, err = w.in.Peek(length); err != nil {
		return 0, nil, 0, err
	}
	_, err = w.in.Discard(length)
	return time.Duration(numbers[0]) * time.Millisecond, who, n - length, err
}

// awaits ends the connection if a frame of so many bytes does not come in time, unless the timer is stopped.
func (w *wire) awaits(n int) *time.Timer {
	return time.AfterFunc(arrival(n), func() { w.close(fmt.Errorf("a frame of %d bytes does not come", n)) })
}

// payload reads so many bytes behind a head.
func (w *wire) payload(n int) ([]byte, error) {
	if w.in.Buffered() < n {
		defer w.awaits(n).Stop()
	}
	p := make([]byte, min(n, MaxShared))
	for at := 0; at < n; {
		if at == len(p) {
			p = append(p, make([]byte, min(n-at, at))...)
		}
		came := w.in.Buffered()
		m, err := w.in.Read(p[at:])
		if at += m; err != nil && at < n {
			return nil, err
		}
		if came == 0 {
			w.sign()
		}
	}
	return p, nil
}

// pass reads so many bytes behind a head that are not looked at.
func (w *wire) pass(n int) error {
	late := w.awaits(n)
	defer late.Stop()
	for n > 0 {
		m, err := w.in.Discard(min(n, readSize))
		if err != nil {
			return err
		}
		w.sign()
		n -= m
	}
	return nil
}
