package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// enqueue commits effects called mail, one for each step, that one event asked for.
func enqueue(t *testing.T, store *memstore.Store, steps ...string) {
	t.Helper()
	for _, step := range steps {
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail", Step: step, Payload: []byte(step)})
	}
}

func add(t *testing.T, store *memstore.Store, e hookonce.Effect) {
	t.Helper()
	tx := store.Begin()
	if err := store.Enqueue(t.Context(), tx, e); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// expect insists on the state of every effect, by number, and returns them.
func expect(t *testing.T, store *memstore.Store, want ...hookonce.State) []hookonce.QueuedEffect {
	t.Helper()
	var all []hookonce.QueuedEffect
	for _, state := range []hookonce.State{hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead, hookonce.StateDone} {
		some, err := store.Effects(t.Context(), state, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b hookonce.QueuedEffect) int { return int(a.ID - b.ID) })
	got := make([]hookonce.State, len(all))
	for i, e := range all {
		got[i] = e.State
	}
	if !slices.Equal(got, want) {
		t.Errorf("the effects are %v, want %v", got, want)
	}
	return all
}

// journal keeps what handlers and observers saw.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) write(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, want) {
		t.Errorf("got %q, want %q", j.lines, want)
	}
}

// observed is an option that writes down every outcome.
func (j *journal) observed() relay.Option {
	return relay.WithObserver(func(_ context.Context, o relay.Observation) { j.write("%s %s %d", o.Name, o.Status, o.Tries) })
}

// start runs a relay for the effects called mail, and returns what stops it and waits for its end.
func start(t *testing.T, queue hookonce.EffectQueue, handle relay.Handler, opts ...relay.Option) (stop func() error) {
	t.Helper()
	quiet := relay.WithLogger(slog.New(slog.DiscardHandler))
	r := relay.New(queue, map[string]relay.Handler{"mail": handle}, append([]relay.Option{quiet}, opts...)...)
	return run(r)
}

func run(r *relay.Relay) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// stopped stops a relay that has nothing to complain about.
func stopped(t *testing.T, stop func() error) {
	t.Helper()
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// pass lets time pass, and waits until all that it set off has happened. Only for bubbles.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// every is a schedule of equal delays.
func every(d time.Duration, attempts int) relay.Option {
	return relay.WithSchedule(func(tries int) (time.Duration, bool) { return d, tries < attempts })
}
