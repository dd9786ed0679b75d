package pgstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// linger is how long a store goes on listening after the last one who waited left.
const linger = 10 * time.Second

// The pauses before a connection that broke is opened again.
const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 15 * time.Second
)

// ears are those who wait in this store for something to be told, and the goroutine that listens for them.
type ears struct {
	mu        sync.Mutex
	waiting   map[string]map[chan struct{}]struct{} // by what they wait for
	cancel    context.CancelFunc                    // ends the goroutine; nil: there is none
	ended     chan struct{}                         // closed when the goroutine is gone
	goodbye   *time.Timer                           // ends it when nobody came for a while
	listening int                                   // connections on which everything is heard
}

func newEars() *ears { return &ears{waiting: map[string]map[chan struct{}]struct{}{}} }

// open reports whether everything that is told now will be heard.
func (e *ears) open() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listening > 0
}

// join adds one who waits for what. The channel has an element when that was told, or may have been missed.
func (e *ears) join(what string) (told <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[what] == nil {
		e.waiting[what] = map[chan struct{}]struct{}{}
	}
	e.waiting[what][c] = struct{}{}
	if e.goodbye != nil {
		e.goodbye.Stop()
	}
	return c, func() { e.leave(what, c) }
}

func (e *ears) leave(what string, c chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting[what], c)
	if len(e.waiting[what]) == 0 {
		delete(e.waiting, what)
	}
	if len(e.waiting) == 0 {
		e.goodbye = time.AfterFunc(linger, e.stopIfAlone)
	}
}

// start runs listen in a goroutine unless there is one.
func (e *ears) start(listen func(context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	e.cancel, e.ended = cancel, ended
	go func() {
		defer close(ended)
		listen(ctx)
	}()
}

// stop ends the goroutine and waits until it is gone.
func (e *ears) stop() { e.stopIf(func() bool { return true }) }

func (e *ears) stopIfAlone() { e.stopIf(func() bool { return len(e.waiting) == 0 }) }

func (e *ears) stopIf(condition func() bool) {
	e.mu.Lock()
	if e.cancel == nil || !condition() {
		e.mu.Unlock()
		return
	}
	cancel, ended := e.cancel, e.ended
	e.cancel = nil
	if e.goodbye != nil {
		e.goodbye.Stop()
	}
	e.mu.Unlock()
	cancel()
	<-ended
}

// hear wakes those who wait for what.
func (e *ears) hear(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	wake(e.waiting[what])
}

// count adds a connection on which everything is heard, or takes one away, and wakes everybody: something
// may have been missed before, or will be from now on.
func (e *ears) count(connections int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listening += connections
	for _, those := range e.waiting {
		wake(those)
	}
}

func wake(those map[chan struct{}]struct{}) {
	for c := range those {
		select {
		case c <- struct{}{}:
		default: // it has been woken and did not look yet
		}
	}
}

// errPooled says that the connection is not ours alone, so that what it listens to may reach somebody else.
var errPooled = errors.New("a pooler stands between this process and the server")

// listen listens until ctx ends, on one connection after the other, or until it meets a pooler.
func (s *Store) listen(ctx context.Context) {
	for pause := minReconnect; ; pause = min(2*pause, maxReconnect) {
		began := time.Now()
		err := s.listenOnce(ctx)
		if errors.Is(err, errPooled) {
			<-ctx.Done() // there is no point in trying again
		}
		if time.Since(began) > maxReconnect {
			pause = minReconnect
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// listenOnce listens on one connection until it breaks.
func (s *Store) listenOnce(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if err := direct(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	s.ears.count(1)
	defer s.ears.count(-1)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		s.ears.hear(n.Payload)
	}
}

// connect opens a connection beside the pool, as the pool opens its own.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// direct returns errPooled if the server's process is not the one that the connection was told of at its
// start: poolers make that up.
func direct(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = errPooled
	}
	return err
}
