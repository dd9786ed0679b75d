package pgstore

import (
	"context"
	"sync"
	"time"
)

// listener are those who wait in this store for something to be told, and the goroutine that listens for them.
type listener struct {
	mu        sync.Mutex
	waiting   map[string]map[chan struct{}]struct{} // by what they wait for
	cancel    context.CancelFunc                    // ends the goroutine; nil: there is none
	ended     chan struct{}                         // closed when the goroutine is gone
	goodbye   *time.Timer                           // ends it when nobody came for a while
	listening int                                   // connections on which everything is heard
}

func newListener() *listener { return &listener{waiting: map[string]map[chan struct{}]struct{}{}} }

// open reports whether everything that is told now will be heard.
func (l *listener) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listening > 0
}

// join adds one who waits for what. The channel has an element when that was told, or may have been missed.
func (l *listener) join(what string) (told <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[what] == nil {
		l.waiting[what] = map[chan struct{}]struct{}{}
	}
	l.waiting[what][c] = struct{}{}
	if l.goodbye != nil {
		l.goodbye.Stop()
	}
	return c, func() { l.leave(what, c) }
}

func (l *listener) leave(what string, c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting[what], c)
	if len(l.waiting[what]) == 0 {
		delete(l.waiting, what)
	}
	if len(l.waiting) == 0 {
		l.goodbye = time.AfterFunc(linger, l.stopIfAlone)
	}
}

// start runs listen in a goroutine unless there is one.
func (l *listener) start(listen func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	l.cancel, l.ended = cancel, ended
	go func() {
		defer close(ended)
		listen(ctx)
	}()
}

// stop ends the goroutine and waits until it is gone.
func (l *listener) stop() { l.stopIf(func() bool { return true }) }

func (l *listener) stopIfAlone() { l.stopIf(func() bool { return len(l.waiting) == 0 }) }

func (l *listener) stopIf(condition func() bool) {
	l.mu.Lock()
	if l.cancel == nil || !condition() {
		l.mu.Unlock()
		return
	}
	cancel, ended := l.cancel, l.ended
	l.cancel = nil
	if l.goodbye != nil {
		l.goodbye.Stop()
	}
	l.mu.Unlock()
	cancel()
	<-ended
}

// hear wakes those who wait for what.
func (l *listener) hear(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake(l.waiting[what])
}

// count adds a connection on which everything is heard, or takes one away, and wakes everybody: something
// may have been missed before, or will be from now on.
func (l *listener) count(connections int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listening += connections
	for _, those := range l.waiting {
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
