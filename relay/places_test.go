package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// However many effects of some names hang, and however long they have been due, another name's goes on; and of those
// that hang as many run as leave the others a place each.
func TestANameThatHangsHoldsUpNoOther(t *testing.T) {
	for _, c := range []struct {
		concurrency int
		hang        string
	}{{2, "crm"}, {3, "crm"}, {8, "crm"}, {200, "crm"}, {3, "crm erp"}, {4, "crm erp"}, {8, "crm erp"}, {8, "crm erp pdf tax fax"}} {
		t.Run(fmt.Sprintf("%d places, %s", c.concurrency, c.hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, done := memstore.New(), new(journal)
				handlers := map[string]relay.Handler{"mail": func(_ context.Context, e hookonce.QueuedEffect) error {
					done.write("%s", e.Step)
					return nil
				}}
				hang := strings.Fields(c.hang)
				for _, name := range hang {
					handlers[name] = func(ctx context.Context, _ hookonce.QueuedEffect) error {
						<-ctx.Done()
						return ctx.Err()
					}
					for i := range 20 {
						add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: fmt.Sprint(i)}, Name: name})
					}
				}
				pass(time.Minute)
				enqueue(t, store, "first")
				stop := run(relay.New(store, handlers, relay.WithConcurrency(c.concurrency), relay.WithLogger(slog.New(slog.DiscardHandler)), relay.WithGrace(0)))
				pass(2 * relay.DefaultPoll)
				done.want(t, "first")
				enqueue(t, store, "second")
				pass(2 * relay.DefaultPoll)
				done.want(t, "first", "second")
				running, err := store.Effects(t.Context(), hookonce.StateProcessing, 0, 1000)
				if want := min(20*len(hang), c.concurrency-1); err != nil || len(running) != want {
					t.Errorf("%d effects are under way, want %d, %v", len(running), want, err)
				}
				for _, name := range hang {
					if !slices.ContainsFunc(running, func(e hookonce.QueuedEffect) bool { return e.Name == name }) {
						t.Errorf("no %s is under way", name)
					}
				}
				stopped(t, stop)
			})
		})
	}
}

// With fewer places than names none has two of them.
func TestFewerPlacesThanNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, done := memstore.New(), new(journal)
		hangs := func(ctx context.Context, _ hookonce.QueuedEffect) error {
			<-ctx.Done()
			return ctx.Err()
		}
		quick := func(_ context.Context, e hookonce.QueuedEffect) error {
			done.write("%s", e.Name)
			return nil
		}
		for i := range 20 {
			add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: fmt.Sprint(i)}, Name: "crm"})
		}
		pass(time.Minute)
		enqueue(t, store, "receipt")
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "pdf"})
		r := relay.New(store, map[string]relay.Handler{"crm": hangs, "mail": quick, "pdf": quick},
			relay.WithConcurrency(2), relay.WithLogger(slog.New(slog.DiscardHandler)), relay.WithGrace(0))
		stop := run(r)
		pass(2 * relay.DefaultPoll)
		done.want(t, "mail", "pdf")
		stopped(t, stop)
	})
}

// A place that is free again is taken at once by whoever waits for one, although others keep theirs for names of
// which nothing is due.
func TestAFreePlaceIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := memstore.New(), time.Now()
		enqueue(t, store, "a", "b", "c", "d", "e", "f")
		slow := func(context.Context, hookonce.QueuedEffect) error {
			time.Sleep(time.Second)
			return nil
		}
		r := relay.New(store, map[string]relay.Handler{"crm": slow, "mail": slow},
			relay.WithConcurrency(3), relay.WithPoll(time.Hour), relay.WithLogger(slog.New(slog.DiscardHandler)))
		stop := run(r)
		pass(3*time.Second - 1)
		if done, err := store.Effects(t.Context(), hookonce.StateDone, 0, 10); err != nil || len(done) != 4 {
			t.Errorf("%d effects are done after nearly %v, want 4, %v", len(done), 3*time.Second, err)
		}
		pass(1)
		expect(t, store, slices.Repeat([]hookonce.State{hookonce.StateDone}, 6)...)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		stopped(t, stop)
	})
}
