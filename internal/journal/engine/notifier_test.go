package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// countingNotifier is the notifier of the processes of one test. It counts how often it was rung.
type countingNotifier struct {
	mu       sync.Mutex
	heard    map[int]func()
	next     int
	notified int
	fails    int // so many of the next rings do; negative: all
}

func (b *countingNotifier) Notify(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notified++
	if b.fails != 0 {
		b.fails--
		return journaltest.ErrInjected
	}
	for _, heard := range b.heard {
		heard()
	}
	return nil
}

func (b *countingNotifier) Listen(ctx context.Context, heard func()) {
	b.mu.Lock()
	n := b.next
	b.next++
	b.heard[n] = heard
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.heard, n)
}

// fail has the next n rings fail.
func (b *countingNotifier) fail(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = n
}

func (b *countingNotifier) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notified
}

// together runs test with two processes on one store that find work of each other only through a notifier.
func together(t *testing.T, test func(t *testing.T, b *countingNotifier, one, two *rig)) {
	b := &countingNotifier{heard: map[int]func(){}}
	opt := quiet("app")
	opt.Notifier = b
	run(t, opt, func(t *testing.T, r *rig) { test(t, b, r, r.another(opt)) })
}

// What a process hands back when it stops is begun by another at once, while the stop still waits for what
// is under way.
func TestNotifier_stop(t *testing.T) {
	together(t, func(t *testing.T, _ *countingNotifier, one, two *rig) {
		one.want(one.accept(entry("evt_1")), journal.Accepted)
		one.want(one.accept(entry("evt_2")), journal.Accepted)
		first := one.receive()
		closed := make(chan error)
		go func() { closed <- one.Close(t.Context()) }()
		if w := two.receive(); w.Key == first.Key || w.Token != 2 || w.Tries != 1 {
			t.Errorf("received %+v", w)
		}
		one.finish(first, journal.Done, time.Time{})
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

// So is what it hands back, and what is accepted, from when its receivers are told to stop, and it takes nothing of that again:
// until Close may be called requests and deliveries can last. Who waits for such an event waits no longer than it takes to ask.
func TestNotifier_retire(t *testing.T) {
	together(t, func(t *testing.T, _ *countingNotifier, one, two *rig) {
		one.want(one.accept(entry("evt_1")), journal.Accepted)
		first := one.receive()
		one.want(one.accept(entry("evt_2")), journal.Accepted)
		second := one.receive()
		one.want(one.accept(entry("evt_3")), journal.Accepted) // nobody receives it
		two.Suspend("app", strictly(time.Now().Add(time.Hour)))
		one.Retire()
		one.finish(second, journal.Pending, time.Now())
		late := one.want(one.accept(entry("evt_4")), journal.Accepted)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := one.Await(ctx, journal.DeliveryID{EventID: late.ID, Destination: "app"})
		if err != nil || s.State != journal.Pending {
			t.Errorf("%+v, %v", s, err)
		}
		one.idle()
		two.Suspend("app", journal.Rest{})
		two.Look()
		got := map[string]bool{}
		for range 3 {
			w := two.receive()
			got[w.Key] = true
			two.finish(w, journal.Done, time.Time{})
		}
		if len(got) != 3 || got["evt_1"] {
			t.Errorf("another process received %v", got)
		}
		one.finish(first, journal.Done, time.Time{})
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// When a process has stopped, the next event of a resource whose turn it was there has its own elsewhere.
func TestNotifier_stopWithOrderedWork(t *testing.T) {
	b := &countingNotifier{heard: map[int]func(){}}
	opt := quiet("app")
	opt.Notifier = b
	opt.Destinations = map[string]journal.Destination{"app": {Ordered: true}}
	run(t, opt, func(t *testing.T, one *rig) {
		first, second := entry("evt_1"), entry("evt_2")
		first.Resource, second.Resource = "order", "order"
		one.want(one.accept(first), journal.Accepted)
		w := one.receive()
		one.want(one.accept(second), journal.Accepted)
		two := one.another(opt)
		closed := make(chan error)
		go func() { closed <- one.Close(t.Context()) }()
		two.idle()
		one.finish(w, journal.Done, time.Time{})
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if w := two.receive(); w.Key != "evt_2" {
			t.Errorf("received %+v", w)
		}
	})
}

// What becomes due by a decision of an operator begins wherever there is room for it.
func TestNotifier_look(t *testing.T) {
	together(t, func(t *testing.T, b *countingNotifier, one, two *rig) {
		one.want(one.accept(entry("evt_1")), journal.Accepted)
		w := one.receive()
		one.Suspend("app", strictly(time.Now().Add(time.Hour)))
		one.Finish(journal.Outcome{Held: w.Held, State: journal.Failed, Due: time.Now(), Started: time.Now()})
		two.idle() // an ordinary retry is not told of
		if n := b.count(); n != 0 {
			t.Errorf("%d rings for ordinary work", n)
		}
		one.Look()
		if w := two.receive(); w.Token != 2 {
			t.Errorf("received %+v", w)
		}
	})
}

// A pause holds everywhere as soon as it was told, and so does its end.
func TestNotifier_pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &countingNotifier{heard: map[int]func(){}}
		store := journaltest.NewMemory()
		opt := quiet("app")
		opt.Notifier = b
		one, two := start(t, store, 0, opt), start(t, store, 1, opt)
		for _, paused := range []bool{true, false} {
			p := journal.Pause{Destination: "app", At: time.Now(), By: "somebody", Reason: "a test"}
			if changed, err := one.SetPaused(t.Context(), p, paused); err != nil || !changed {
				t.Fatal(changed, err)
			}
			synctest.Wait()
			if two.Paused("app") != paused {
				t.Errorf("paused elsewhere: %v, want %v", !paused, paused)
			}
			sleep(time.Second)
		}
	})
}

// Many reasons at once are one ring, and the next waits a moment.
func TestNotifier_coalesces(t *testing.T) {
	together(t, func(t *testing.T, b *countingNotifier, one, _ *rig) {
		for range 100 {
			one.Look()
		}
		synctest.Wait()
		for range 100 {
			one.Look()
		}
		synctest.Wait()
		if n := b.count(); n < 1 || n > 2 {
			t.Errorf("rung %d times at once", n)
		}
		sleep(time.Second)
		if n := b.count(); n < 2 || n > 3 {
			t.Errorf("rung %d times for what came in two bursts", n)
		}
	})
}

// A notifier that cannot be rung costs nothing but time: work is found by polling. It is rung again until it can, in peace.
func TestNotifier_broken(t *testing.T) {
	b := &countingNotifier{heard: map[int]func(){}, fails: -1}
	opt := quiet("app")
	opt.Notifier = b
	run(t, opt, func(t *testing.T, one *rig) {
		two := one.another(opt)
		one.want(one.accept(entry("evt_1")), journal.Accepted)
		one.Look()
		sleep(10 * time.Second)
		if n := b.count(); n < 5 || n > 12 {
			t.Errorf("rung %d times in 10 s", n)
		}
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		two.idle()
		sleep(opt.Poll)
		two.receive()
	})
}
