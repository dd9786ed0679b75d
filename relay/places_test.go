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

// However many effects of some names hang, and however long they have been due, another name's goes
// on; and of those that hang as many are under way as leave the others a place each, or half of
// the places.
func TestANameThatHangsHoldsUpNoOther(t *testing.T) {
	for _, c := range []struct {
		concurrency int
		hang        string // 20 effects of each of these names
		others      int    // names that have none
		underway    int    // effects that hang, in the end
	}{
		{2, "crm", 0, 1}, {3, "crm", 0, 2}, {8, "crm", 0, 7}, {200, "crm", 0, 20},
		{4, "crm erp", 0, 3}, {5, "crm erp", 0, 4}, {8, "crm erp", 0, 7}, {10, "crm erp pdf tax fax", 0, 9},
		{2, "crm", 20, 1}, {3, "crm", 20, 2}, {8, "crm", 2, 5}, {8, "crm", 20, 4},
	} {
		t.Run(fmt.Sprintf("%d places, %s, %d others", c.concurrency, c.hang, c.others), func(t *testing.T) {
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
				for i := range c.others {
					handlers[fmt.Sprint("other ", i)] = handlers["mail"]
				}
				pass(time.Minute)
				enqueue(t, store, "first")
				stop := run(relay.New(store, handlers, relay.WithConcurrency(c.concurrency), relay.WithLogger(slog.New(slog.DiscardHandler)), relay.WithGrace(0)))
				pass(2 * relay.DefaultPoll)
				done.want(t, "first")
				enqueue(t, store, "second")
				pass(2 * relay.DefaultPoll)
				done.want(t, "first", "second")
				underway, err := store.Effects(t.Context(), hookonce.StateProcessing, 0, 1000)
				if err != nil || len(underway) != c.underway {
					t.Errorf("%d effects are under way, want %d, %v", len(underway), c.underway, err)
				}
				for _, name := range hang {
					if !slices.ContainsFunc(underway, func(e hookonce.QueuedEffect) bool { return e.Name == name }) {
						t.Errorf("no %s is under way", name)
					}
				}
				stopped(t, stop)
			})
		})
	}
}

// A place that is free again is taken at once by whoever waits for one, although another is
// kept for a name of which nothing is due.
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
