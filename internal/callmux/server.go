package callmux

import (
	"bufio"
	"context"
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

	limit atomic.Pointer[limit]

	mu     sync.Mutex
	ends   map[*end]bool
	closed bool
	served sync.WaitGroup // connections
	calls  sync.WaitGroup // being carried out, also of connections that have ended
	under  atomic.Int64   // how many
}

// NewServer returns a server that has calls answered by handle, each in a goroutine of its own: left is how much time the caller
// gives it (0: any), and ctx ends with the connection. It may keep the payload.
func NewServer(handle func(ctx context.Context, left time.Duration, payload []byte) []byte) *Server {
	s := &Server{handle: handle, ends: map[*end]bool{}}
	s.Limit(64<<20, nil)
	return s
}

// limit is how many bytes a call has at most, and what a longer one is answered.
type limit struct {
	bytes  int64
	answer []byte
}

// Limit sets how many bytes a call has at most from now on, and what a longer one is answered: it would be too long whenever it came,
// so that it must not be told that there is no memory. At first it is 64 MiB, and nothing.
func (s *Server) Limit(n int64, tooLong []byte) { s.limit.Store(&limit{n, tooLong}) }

// MaxConnections is how many a server has at most.
const MaxConnections = 1024

// maxUnder is how many calls of one connection are under way at most: those of a client, and those that it gave up.
const maxUnder = 4 * maxCalls

// workers is how many goroutines a connection keeps for calls to come.
const workers = 32

// Every connection is served for so long, and then gets grace for what is under way on it. Clients renew theirs before.
const (
	maxAge = 2 * renewal
	grace  = 10 * time.Second
	// tail is how long a connection that is to end waits for calls that were sent before the other side heard of it.
	tail = 500 * time.Millisecond
)

// end is a connection of a server.
type end struct {
	*wire
	of      *Server
	memory  func(who string) Memory
	trusted func() bool
	since   time.Time
	leaving sync.Once
	work    chan request
	under   atomic.Int64 // calls whose answer is not queued
	kept    atomic.Int64 // goroutines that wait for calls

	memories map[string]Memory // what memory said; of the goroutine that reads
}

type request struct {
	id      uint32
	left    time.Duration
	payload []byte
	memory  Memory
	size    int64 // that was taken of it
}

// Serve answers the calls on a connection until that ends, 10 minutes at most. Calls and answers are held in the memory of whoever
// makes them; one that has no room there is answered with [ErrCrowded]. in has read what came already.
// The connection is cut within a second after trusted says no, which is asked once a second; nil: never. The contexts of the calls
// come from ctx, whose end ends nothing else.
func (s *Server) Serve(ctx context.Context, conn io.ReadWriteCloser, in *bufio.Reader, memory func(who string) Memory, trusted func() bool) {
	e := &end{wire: newWire(conn, bufio.NewReaderSize(in, readSize)), of: s, memory: memory, trusted: trusted, since: time.Now(), work: make(chan request), memories: map[string]Memory{}}
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go e.write(true)
	go e.watch()
	e.close(e.read(ctx))
	s.mu.Lock()
	delete(s.ends, e)
	s.mu.Unlock()
}

// Close has no new calls come, waits until those under way are answered, also those whose connection has ended, and ends the
// connections. When ctx ends first it cuts them off, and says so.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for e := range s.ends {
		e.leave("the server is closed", time.Hour)
	}
	s.mu.Unlock()
	served, done := make(chan struct{}), make(chan struct{})
	go func() {
		s.served.Wait()
		close(served)
		s.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for e := range s.ends {
		e.close(errors.New("the server is closed"))
	}
	cut := s.under.Load()
	s.mu.Unlock()
	<-served
	if cut > 0 {
		return fmt.Errorf("callmux: %d calls were cut off: %w", cut, context.Cause(ctx))
	}
	return nil
}

// watch ends a connection whose other side says nothing, not even that it is alive, or is not trusted any more, or that is old.
func (e *end) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-e.gone:
			return
		case <-tick.C:
		}
		switch {
		case e.quiet() >= silence:
			e.close(errors.New("the other side says nothing"))
		case e.trusted != nil && !e.trusted():
			e.close(errors.New("the other side is not trusted any more"))
		case time.Since(e.since) >= maxAge:
			e.leave("it is old", grace)
		}
	}
}

// leave tells the other side that no new calls are to come, and ends the connection when those under way are answered, after
// patience at last.
func (e *end) leave(why string, patience time.Duration) {
	e.leaving.Do(func() {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = e.send(ctx, kindClosing, 0, nil)
			tick := time.NewTicker(tail)
			defer tick.Stop()
			for {
				select {
				case <-e.gone:
					return
				case <-ctx.Done():
					e.close(errors.New(why))
				case <-tick.C:
					if e.under.Load() == 0 && e.written() {
						e.close(errors.New(why))
					}
				}
			}
		}()
	})
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
			err = e.send(ctx, kindPong, 0, nil)
		case kind != kindCall:
			err = fmt.Errorf("a frame of kind %d", kind)
		default:
			err = e.take(ctx, id, n)
		}
		if err != nil {
			return err
		}
	}
}

// take reads a call and has it answered, if there is memory for it.
func (e *end) take(ctx context.Context, id uint32, n int) error {
	left, who, n, err := e.callHead(n)
	if err != nil {
		return err
	}
	memory := e.memoryOf(who)
	if most := e.of.limit.Load(); int64(n) > most.bytes {
		if err := e.pass(n); err != nil {
			return err
		}
		return e.send(ctx, kindAnswer, id, nil, most.answer)
	}
	if !e.begin(memory, int64(n)) {
		if err := e.pass(n); err != nil {
			return err
		}
		return e.send(ctx, kindCrowded, id, nil)
	}
	payload, err := e.payload(n)
	if err != nil {
		e.finish(memory, int64(n))
		return err
	}
	r := request{id, left, payload, memory, int64(n)}
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

// answer has a call answered. What is held of it is given back when its answer is queued.
func (e *end) answer(ctx context.Context, r request) {
	held := r.size
	defer func() { e.finish(r.memory, held) }()
	answer := e.of.handle(ctx, r.left, r.payload)
	r.payload = nil
	r.memory.Give(held - int64(len(answer))) // which may be more, and has others refused until it is written
	held = int64(len(answer))
	for len(answer) > maxPart {
		if e.send(ctx, kindPart, r.id, nil, answer[:maxPart]) != nil {
			return
		}
		answer = answer[maxPart:]
	}
	_ = e.send(ctx, kindAnswer, r.id, nil, answer) // or the connection has ended, which whoever called sees
}

// maxKnown is how many callers a connection remembers the memory of.
const maxKnown = 256

// memoryOf is what the calls of who are held in.
func (e *end) memoryOf(who []byte) Memory {
	if m := e.memories[string(who)]; m != nil {
		return m
	}
	m := e.memory(string(who))
	if len(e.memories) < maxKnown {
		e.memories[string(who)] = m
	}
	return m
}

// begin takes a call of n bytes into account, if there is room for it.
func (e *end) begin(memory Memory, n int64) bool {
	if e.under.Add(1) <= maxUnder && memory.Take(n) {
		e.of.calls.Add(1)
		e.of.under.Add(1)
		return true
	}
	e.under.Add(-1)
	return false
}

func (e *end) finish(memory Memory, n int64) {
	memory.Give(n)
	e.under.Add(-1)
	e.of.under.Add(-1)
	e.of.calls.Done()
}
