package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// A name that no handler is for is told of once, when another relay had time to take its effects, and never more than a hundred
// of them.
func TestNamesWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memstore.New(), new(lines)
		wait := func(name, step string) {
			add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: name, Step: step})
		}
		told := func(name string) int { return strings.Count(log.String(), " name="+name+" ") }
		wait("mial", "1")
		wait("mail", "2")
		wait("mial", "3")
		wait("crm", "4")
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		pass(30 * time.Second)
		if log.String() != "" {
			t.Errorf("another relay had no time to take them:\n%s", log)
		}
		pass(10 * time.Minute)
		if told("mial") != 1 || told("crm") != 1 || told("mail") != 0 {
			t.Errorf("after ten minutes it has said\n%s", log)
		}
		for n := range 300 {
			wait(fmt.Sprint("more", n), fmt.Sprint("more", n))
		}
		pass(10 * time.Minute)
		if n := strings.Count(log.String(), "has no handler for"); n != 100 {
			t.Errorf("it has told of %d names", n)
		}
		stopped(t, stop)
	})
}

// It is told of as well behind many effects that are not due yet.
func TestNamesBehindWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memstore.New(), new(lines)
		wait := func(name string, n int) {
			add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: name, Step: fmt.Sprint(n), Due: time.Now().Add(24 * time.Hour)})
		}
		for n := range 2500 {
			wait("mail", n)
		}
		wait("mial", 2500)
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		pass(10 * time.Minute)
		if n := strings.Count(log.String(), " name=mial "); n != 1 {
			t.Errorf("it is told of %d times", n)
		}
		stopped(t, stop)
	})
}

// lines are what a relay logs, to be read while it goes on.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
