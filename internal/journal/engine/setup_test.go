package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a journal on the reference store, with faults to inject, inside a synctest bubble.
type rig struct {
	*engine.Engine
	t     *testing.T
	store *journaltest.Memory
	fault *journaltest.Faulty
	log   *bytes.Buffer // what the journal logs; read it while the journal is at rest
}

// run runs test in a bubble with a journal of its own, which is closed at the end unless test did so.
func run(t *testing.T, opt engine.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, journaltest.NewMemory(), 0, opt)
		test(t, r)
	})
}

// open starts a journal and closes it when the test ends. Work that the test left unfinished is fine.
func open(t testing.TB, store journal.Store, opt engine.Options) *engine.Engine {
	t.Helper()
	j, err := engine.New(store, journaltest.Options(opt))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = j.Close(ctx)
	})
	return j
}

// another starts a second journal on the same store: another process.
func (r *rig) another(opt engine.Options) *rig {
	return start(r.t, r.store, 1, opt)
}

// start starts a journal with its own faults and log on store.
func start(t *testing.T, store *journaltest.Memory, writer int, opt engine.Options) *rig {
	t.Helper()
	return startOn(t, store, store, writer, opt)
}

// startOn is start on what wraps the store.
func startOn(t *testing.T, store *journaltest.Memory, wrapped journal.Store, writer int, opt engine.Options) *rig {
	t.Helper()
	r := &rig{t: t, store: store, fault: journaltest.NewFaulty(wrapped), log: new(bytes.Buffer)}
	opt.IDs = journal.NewIDs(writer, 0)
	opt.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	r.Engine = open(t, r.fault, opt)
	synctest.Wait() // the first look for work is over
	return r
}

// wantLog fails the test unless the log has a text so many times.
func (r *rig) wantLog(n int, text string) {
	r.t.Helper()
	synctest.Wait()
	if got := strings.Count(r.log.String(), text); got != n {
		r.t.Errorf("%d times %q in the log, want %d:\n%s", got, text, n, r.log)
	}
}

// entry returns an entry for the key, with one destination.
func entry(key string) *journal.Event {
	return &journal.Event{
		Source: "billing", Key: key, Type: "invoice.paid", Digest: []byte("0123456789abcdef"),
		Header: []byte("Content-Type: application/json\r\n"), Facts: []byte("Hookonce-Provider: stripe\r\n"), Body: []byte(`{"id":"` + key + `"}`),
		Destinations: []string{"app"}, ReceivedAt: time.Now(),
	}
}

// forged returns another event under the same key.
func forged(key string) *journal.Event {
	e := entry(key)
	e.Digest = []byte("fedcba9876543210")
	return e
}

// answer is what a call of Accept returned for its first entry.
type answer struct {
	journal.Result
	err error
}

func (r *rig) accept(entries ...*journal.Event) answer {
	return result(r.Accept(context.Background(), entries))
}

func result(results []journal.Result, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	return answer{results[0], results[0].Err}
}

// acceptForASecond is what a sender is told of an event for which it waits no longer.
func (r *rig) acceptForASecond(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := r.Accept(ctx, []*journal.Event{entry(key)})
	return err
}

// goAccept calls Accept in the background and returns after it is queued.
func (r *rig) goAccept(entries ...*journal.Event) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- r.accept(entries...) }()
	synctest.Wait()
	return answers
}

// want fails the test unless a is a success with the given status.
func (r *rig) want(a answer, status journal.Status) journal.Result {
	r.t.Helper()
	if a.err != nil || a.Status != status {
		r.t.Fatalf("got %q, error %v; want %q", a.Status, a.err, status)
	}
	return a.Result
}

// receive returns the next work, waiting until everything that could bring it has come to rest.
func (r *rig) receive() *journal.Work {
	r.t.Helper()
	synctest.Wait()
	select {
	case w := <-r.Work():
		if w == nil {
			r.t.Fatal("the work channel is closed")
		}
		return w
	default:
		r.t.Fatalf("no work; the store has %+v", r.store.Deliveries())
		return nil
	}
}

// idle fails the test if there is work.
func (r *rig) idle() {
	r.t.Helper()
	synctest.Wait()
	select {
	case w, ok := <-r.Work():
		if ok {
			r.t.Fatalf("unexpected work %+v", w.Held)
		}
	default:
	}
}

// finish reports an outcome and waits until the journal has done with it what it can.
func (r *rig) finish(w *journal.Work, state journal.State, due time.Time) {
	r.Finish(journal.Outcome{Held: w.Held, State: state, Due: due, Started: time.Now()})
	synctest.Wait()
}

// delivery returns the only open delivery.
func (r *rig) delivery() journaltest.Delivery {
	r.t.Helper()
	open := r.store.Deliveries()
	if len(open) != 1 {
		r.t.Fatalf("want one open delivery, have %+v", open)
	}
	return open[0]
}

func key(i int) string { return fmt.Sprintf("evt_%d", i) }

// sleep lets bubble time pass and everything that it triggers happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// steal takes over a delivery in the store, as a process does whose clock runs far ahead.
func steal(r *rig, h journal.Held) {
	r.t.Helper()
	ahead := time.Now().Add(24 * time.Hour)
	taken, err := r.store.Take(context.Background(), ahead, ahead.Add(time.Hour), journal.Wanted{Deliveries: 10})
	if err != nil || len(taken) != 1 || taken[0].EventID != h.EventID {
		r.t.Fatal(taken, err)
	}
}

// pickyStore fails every Finish that contains one event.
type pickyStore struct {
	journal.Store
	refuse int64
}

func (s *pickyStore) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	for _, o := range outcomes {
		if o.EventID == s.refuse {
			return nil, journaltest.ErrInjected
		}
	}
	return s.Store.Finish(ctx, outcomes)
}
