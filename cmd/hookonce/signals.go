package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/gateway"
)

// untilSignal returns a context that ends with the first SIGTERM or SIGINT, or one of more. The second one
// ends the process at once, unless sooner, which may be nil, makes something of it and reports true.
func untilSignal(ctx context.Context, w *env, sooner func() bool, more ...os.Signal) (context.Context, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, append(more, syscall.SIGTERM, os.Interrupt)...)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		cancel(fmt.Errorf("received %v", s))
		last := time.Now()
		for range signals {
			if time.Since(last) < gateway.SameSignal {
				continue
			}
			last = time.Now()
			if sooner != nil && sooner() {
				continue
			}
			fmt.Fprintln(w.err, "second signal: ending at once")
			os.Exit(exitFailure)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// gatewaySignals are the signals that a gateway follows from before it runs.
type gatewaySignals struct {
	reading chan os.Signal // SIGHUP
	running atomic.Pointer[gateway.Gateway]
}

// followSignals begins to follow them and returns a context that ends with the gateway's. SIGHUP ends one on
// which somebody develops in a terminal: it comes when that is closed, and there is no configuration to read again.
func followSignals(ctx context.Context, w *env, development bool) (*gatewaySignals, context.Context, func()) {
	s := &gatewaySignals{reading: make(chan os.Signal, 1)}
	var ending []os.Signal
	if development {
		signal.Ignore(syscall.SIGPIPE) // whoever reads its lines may leave
	}
	if development && isTerminal(w.err) {
		ending = append(ending, syscall.SIGHUP)
	} else {
		signal.Notify(s.reading, syscall.SIGHUP)
	}
	ctx, stop := untilSignal(ctx, w, s.hurry, ending...)
	return s, ctx, func() {
		signal.Stop(s.reading)
		close(s.reading)
		stop()
	}
}

// hurry ends the delay at the beginning of a stop, if there is one.
func (s *gatewaySignals) hurry() bool {
	g := s.running.Load()
	return g != nil && g.Hurry()
}

// steer has the gateway read its configuration again at each SIGHUP, and at one that came before it ran. What
// comes of it is in its log.
func (s *gatewaySignals) steer(ctx context.Context, g *gateway.Gateway) {
	s.running.Store(g)
	go func() {
		for range s.reading {
			_, _ = g.Reload(ctx, "signal")
		}
	}()
}
