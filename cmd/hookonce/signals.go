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

// untilSignal returns a context that ends with the first SIGTERM or SIGINT. The second one ends the
// process at once, unless sooner, which may be nil, makes something of it and reports true. SIGHUP
// goes to reading, for a command that reads something again. Where that is nil it ends the command
// as well, unless whoever started it said not to (nohup).
func untilSignal(ctx context.Context, w *env, sooner func() bool, reading chan os.Signal) (context.Context, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	switch {
	case reading != nil:
		signal.Notify(reading, syscall.SIGHUP)
	case !signal.Ignored(syscall.SIGHUP):
		signal.Notify(signals, syscall.SIGHUP)
	}
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
		if reading != nil {
			signal.Stop(reading)
			close(reading)
		}
		cancel(nil)
	}
}

// gatewaySignals are the signals that a gateway follows from before it runs.
type gatewaySignals struct {
	reading chan os.Signal // SIGHUP; nil: it ends the gateway
	running atomic.Pointer[gateway.Gateway]
}

// followSignals begins to follow them and returns a context that ends with the gateway's. SIGHUP ends one on
// which somebody develops in a terminal: it comes when that is closed, and there is no configuration to read again.
func followSignals(ctx context.Context, w *env, development bool) (*gatewaySignals, context.Context, func()) {
	s := &gatewaySignals{}
	signal.Ignore(syscall.SIGPIPE) // whoever reads its lines, or collects its log, may leave
	if !development || !isTerminal(w.err) {
		s.reading = make(chan os.Signal, 1)
	}
	ctx, stop := untilSignal(ctx, w, s.hurry, s.reading)
	return s, ctx, stop
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
	if s.reading == nil {
		return
	}
	go func() {
		for range s.reading {
			_, _ = g.Reload(ctx, "signal")
		}
	}()
}
