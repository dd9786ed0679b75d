package callmux

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Memory is what calls are held in. Take reports whether n more bytes may be held, and Give returns some.
type Memory interface {
	Take(n int64) bool
	Give(n int64)
}

// Server answers calls. Its methods are safe for concurrent use.
type Server struct {
	handle func(ctx context.Context, left time.Duration, payload []byte) []byte

	mu     sync.Mutex
	ends   map[*end]bool
	closed bool
	served sync.WaitGroup
}

// NewServer returns a server that has calls answered by handle, each in a goroutine of its own: left is how much time the caller
// gives it (0: any), and ctx ends with the connection. It may keep the payload.
func NewServer(handle func(ctx context.Context, left time.Duration, payload []byte) []byte) *Server {
	return &Server{handle: handle, ends: map[*end]bool{}}
}

// MaxConnections is how many a server has at most.
const MaxConnections = 1024

// maxUnder is how many calls of one connection are under way at most: those of a client, and those that it gave up.
const maxUnder = 4 * maxCalls

// workers is how many goroutines a connection keeps for calls to come.
const workers = 32

// end is a connection of a server.
type end struct {
	*wire
	of     *Server
	memory Memory
	work   chan request
	under  atomic.Int64 // calls that are not answered
	kept   atomic.Int64 // goroutines that wait for calls
}

type request struct {
	id      uint32
	left    time.Duration
	payload []byte
	size    int64 // that memory was taken for
}

// Serve answers the calls on a connection until that ends. Calls are held in memory; one that has no room there is answered
// with [ErrCrowded], however long it is. in has read what came already.
func (s *Server) Serve(conn io.ReadWriteCloser, in *bufio.Reader, memory Memory) {
	e := &end{wire: newWire(conn, in), of: s, memory: memory, work: make(chan request)}
	s.mu.Lock()
	if s.closed || len(s.ends) >= MaxConnections {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	s.ends[e] = true
	s.served.Add(1)
	s.mu.Unlock()
	defer s.served.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go e.write(true)
	go e.watch()
	e.close(e.read(ctx))
	s.mu.Lock()
	delete(s.ends, e)
	s.mu.Unlock()
}

// Close has no new calls come, waits until those under way are answered, and ends the connections. When ctx ends first it cuts
// them off, and says so.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for e := range s.ends {
		go func() { _ = e.send(ctx, kindClosing, 0) }()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); s.served.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	cut := int64(0)
	for e := range s.ends {
		cut += e.under.Load()
		e.close(errors.New("the server is closed"))
	}
	s.mu.Unlock()
	<-done
	if cut > 0 {
		return fmt.Errorf("callmux: %d calls were cut off: %w", cut, context.Cause(ctx))
	}
	return nil
}

// watch gives a connection up whose other side says nothing, not even that it is alive.
func (e *end) watch() {
	tick := time.NewTicker(pingAfter)
	defer tick.Stop()
	for {
		select {
		case <-e.gone:
			return
		case <-tick.C:
			if e.quiet() >= silence {
				e.close(errors.New("the other side says nothing"))
				return
			}
		}
	}
}

// read takes calls in until the connection ends.
func (e *end) read(ctx context.Context) error {
	defer close(e.work)
	for {
		kind, id, n, err := e.head()
		switch {
		case err != nil:
			return err
		case kind == kindPing && n == 0:
			err = e.send(ctx, kindPong, 0)
		case kind != kindCall:
			err = fmt.Errorf("a frame of kind %d", kind)
		case !e.begin(int64(n)):
			if _, err = io.CopyN(io.Discard, e.in, int64(n)); err == nil {
				err = e.send(ctx, kindCrowded, id)
			}
		default:
			err = e.take(ctx, id, n)
		}
		if err != nil {
			return err
		}
	}
}

// take reads a call and has it answered.
func (e *end) take(ctx context.Context, id uint32, n int) error {
	payload, err := e.payload(n)
	left, size := binary.Uvarint(payload)
	if err == nil && size <= 0 {
		err = errors.New("a call that does not say for how long")
	}
	if err != nil {
		e.finish(int64(n))
		return err
	}
	r := request{id, time.Duration(left) * time.Millisecond, payload[size:], int64(n)}
	select {
	case e.work <- r:
	default:
		go e.answers(ctx, r)
	}
	return nil
}

// answers answers a call, and stays for others if goroutines are to be kept for them, because their stacks have grown.
func (e *end) answers(ctx context.Context, r request) {
	for ok := true; ok; {
		e.answer(ctx, r)
		if ok = e.kept.Add(1) <= workers; ok {
			r, ok = <-e.work
		}
		e.kept.Add(-1)
	}
}

// answer has a call answered.
func (e *end) answer(ctx context.Context, r request) {
	answer := e.of.handle(ctx, r.left, r.payload)
	e.finish(r.size)
	for len(answer) > maxPart {
		if e.send(ctx, kindPart, r.id, answer[:maxPart]) != nil {
			return
		}
		answer = answer[maxPart:]
	}
	_ = e.send(ctx, kindAnswer, r.id, answer) // or the connection has ended, which whoever called sees
}

// begin takes a call of n bytes into account, if there is room for it.
func (e *end) begin(n int64) bool {
	if e.under.Add(1) <= maxUnder && e.memory.Take(n) {
		return true
	}
	e.under.Add(-1)
	return false
}

func (e *end) finish(n int64) {
	e.memory.Give(n)
	e.under.Add(-1)
}
