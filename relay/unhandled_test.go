package relay_test

import (
	"bytes"
	"context"
	"errors"
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

// It is told of as well when somebody tried its effects before, and left: when they are due, or
// their lease has run out, and nobody comes. Until then their relay may be at work.
func TestNamesWhoseRelayWentAway(t *testing.T) {
	crm := hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "crm"}
	tried := func(t *testing.T, store *memstore.Store, again time.Duration) {
		failing := func(context.Context, hookonce.QueuedEffect) error { return errors.New("no") }
		r := relay.New(store, map[string]relay.Handler{"crm": failing}, relay.WithLogger(slog.New(slog.DiscardHandler)), every(again, 2))
		stop := run(r)
		synctest.Wait()
		stopped(t, stop)
		expect(t, store, hookonce.StateFailed)
	}
	taken := func(t *testing.T, store *memstore.Store, lease time.Duration) {
		got, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"crm"}, Limit: 1, Lease: lease})
		if err != nil || len(got) != 1 {
			t.Fatalf("took %v, %v", got, err)
		}
	}
	for name, left := range map[string]func(t *testing.T, store *memstore.Store, until time.Duration){"failed": tried, "taken": taken} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, log := memstore.New(), new(lines)
				add(t, store, crm)
				left(t, store, time.Hour)
				stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				pass(time.Hour)
				if log.String() != "" {
					t.Errorf("its relay may be at work:\n%s", log)
				}
				pass(10 * time.Minute)
				if n := strings.Count(log.String(), " name=crm "); n != 1 {
					t.Errorf("it is told of %d times:\n%s", n, log)
				}
				stopped(t, stop)
			})
		})
	}
}

// A store that is slow to list holds up no effect.
func TestLookingForNamesHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes := memstore.New(), new(journal)
		stop := start(t, &unlisted{store}, func(context.Context, hookonce.QueuedEffect) error { return nil }, outcomes.observed())
		synctest.Wait()
		enqueue(t, store, "receipt")
		pass(relay.DefaultPoll)
		outcomes.want(t, "mail done 1")
		stopped(t, stop)
	})
}

// unlisted is a store that does not come to an end with its list.
type unlisted struct{ *memstore.Store }

func (u *unlisted) Effects(ctx context.Context, _ hookonce.State, _ int64, _ int) ([]hookonce.QueuedEffect, error) {
	<-ctx.Done()
	return nil, ctx.Err()
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
