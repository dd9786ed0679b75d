package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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
		wait := func(name, step string) { // due since an hour, as what is scheduled by the time of its event
			add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: name, Step: step, Due: time.Now().Add(-time.Hour)})
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
		wait := func(name string, n int, due time.Time) {
			add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: name, Step: fmt.Sprint(n), Due: due})
		}
		for n := range 2500 {
			wait("mail", n, time.Now().Add(24*time.Hour))
		}
		wait("mial", 2500, time.Time{})
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		pass(10 * time.Minute)
		if n := strings.Count(log.String(), " name=mial "); n != 1 {
			t.Errorf("it is told of %d times", n)
		}
		stopped(t, stop)
	})
}

// A queue that knows its names is asked for them, and none of its payloads is read; another relay's effect that is not due yet
// waits for nobody.
func TestNamesAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memstore.New(), new(lines)
		begun := time.Now()
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mial"})
		queue := &named{Store: store, counts: []hookonce.EffectCount{
			{Name: "crm", Dead: 1}, {Name: "mail", Open: 1, Due: begun}, {Name: "mial", Open: 1, Due: begun}, {Name: "reminder", Open: 1, Due: begun.Add(time.Hour)},
		}}
		stop := start(t, queue, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		pass(time.Hour)
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, " name=mial effect=1 state=pending ") {
			t.Errorf("after an hour it has said\n%s", text)
		}
		pass(10 * time.Minute)
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, " name=reminder ") {
			t.Errorf("after another ten minutes it has said\n%s", text)
		}
		if n := queue.read.Load(); n != 0 {
			t.Errorf("effects were read %d times", n)
		}
		stopped(t, stop)
	})
}

// named is a store that counts its effects by name.
type named struct {
	*memstore.Store
	counts []hookonce.EffectCount
	read   atomic.Int64
}

func (n *named) Effects(ctx context.Context, s hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error) {
	n.read.Add(1)
	return n.Store.Effects(ctx, s, after, limit)
}

func (n *named) CountEffects(context.Context, int) ([]hookonce.EffectCount, error) {
	return n.counts, nil
}

func (n *named) ListEffects(_ context.Context, q hookonce.EffectQuery) ([]hookonce.QueuedEffect, error) {
	for i, c := range n.counts {
		if c.Name == q.Name && q.Limit == 1 {
			return []hookonce.QueuedEffect{{ID: int64(i - 1), Effect: hookonce.Effect{Name: c.Name, Due: c.Due}, State: hookonce.StatePending}}, nil
		}
	}
	return nil, nil
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
