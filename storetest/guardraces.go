package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
)

func concurrentGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a version waits for another one of the resource", raceNewerWaits[Tx]},
		{"the answer is about what was committed first", raceNewerTwo[Tx]},
		{"one of many is newer", raceNewerSame[Tx]},
		{"of many versions the highest stands", raceNewerMany[Tx]},
		{"a move waits for another one of the entity", raceTransitionWaits[Tx]},
		{"the move is from where the first one went", raceTransitionTwo[Tx]},
		{"one of many moves first", raceTransitionFirst[Tx]},
		{"of two moves to different states one is made", raceTransitionFork[Tx]},
	}
}

func raceNewerWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.newer(t, "known", 1, true)
	for _, resource := range []string{"known", "fresh"} {
		finish := f.holdTx(t, func(tx Tx) error { _, err := f.guards(t).Newer(t.Context(), tx, resource, 5); return err })
		for _, version := range []int64{4, 5, 6} {
			f.mustWait(t, func(ctx context.Context, tx Tx) error {
				_, err := f.guards(t).Newer(ctx, tx, resource, version)
				return err
			})
		}
		finish(true)
		f.newer(t, resource, 5, false)
	}
	// So it does when the one before it changed nothing.
	finish := f.holdTx(t, func(tx Tx) error { _, err := f.guards(t).Newer(t.Context(), tx, "known", 2); return err })
	f.mustWait(t, func(ctx context.Context, tx Tx) error {
		_, err := f.guards(t).Newer(ctx, tx, "known", 7)
		return err
	})
	finish(true)
}

func raceNewerTwo[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, race := range []struct {
		first, second int64
		commit, newer bool
	}{{5, 6, true, true}, {6, 5, true, false}, {5, 5, true, false}, {6, 5, false, true}, {5, 6, false, true}} {
		for _, known := range []bool{false, true} {
			for range rounds / 2 {
				resource := fmt.Sprintf("order-%d-%v-%d", i, known, f.next())
				if known {
					f.newer(t, resource, -1, true)
				}
				finish := f.holdTx(t, func(tx Tx) error { _, err := f.guards(t).Newer(t.Context(), tx, resource, race.first); return err })
				var g errgroup.Group
				var newer bool
				g.Go(func() (err error) {
					newer, err = f.tryNewer(t, resource, race.second)
					return err
				})
				finish(race.commit)
				ok(t, g.Wait())
				if newer != race.newer {
					t.Fatalf("after %d (committed: %v) version %d is newer: %v", race.first, race.commit, race.second, newer)
				}
			}
		}
	}
}

// racing runs work by many at once, each with its number.
func racing(t testing.TB, work func(i int) error) {
	t.Helper()
	start := make(chan struct{})
	var g errgroup.Group
	for i := range racers {
		g.Go(func() error { <-start; return work(i) })
	}
	close(start)
	ok(t, g.Wait())
}

func raceNewerSame[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds / 2 {
		resource, answers := fmt.Sprint("order-", f.next()), make([]bool, racers)
		racing(t, func(i int) (err error) {
			answers[i], err = f.tryNewer(t, resource, 1)
			return err
		})
		if n := count(answers); n != 1 {
			t.Fatalf("%d of %d copies of one version were newer", n, racers)
		}
	}
}

// raceNewerMany also checks with an effect per version that one that answered false did not happen.
func raceNewerMany[Tx any](t *testing.T, f *txFixture[Tx]) {
	answers := make([]bool, racers)
	racing(t, func(i int) error {
		return f.retried(t, func(tx Tx) (err error) {
			answers[i], err = f.guards(t).Newer(t.Context(), tx, "order-1", int64(i))
			if err == nil && answers[i] {
				err = f.db.Effect(t.Context(), tx, fmt.Sprint(i))
			}
			return err
		})
	})
	if !answers[racers-1] {
		t.Fatal("the highest version was not newer")
	}
	want := map[string]int{}
	for i, newer := range answers {
		if newer {
			want[fmt.Sprint(i)] = 1
		}
	}
	f.effects(t, want)
	f.newer(t, "order-1", racers-1, false)
	f.newer(t, "order-1", racers, true)
}

func count(answers []bool) (n int) {
	for _, yes := range answers {
		if yes {
			n++
		}
	}
	return n
}

func raceTransitionWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "known", "", "open", "open", true)
	for _, hold := range []struct {
		entity, from, to string
		commit           bool
	}{
		{"known", "open", "paid", false}, {"fresh", "", "open", false},
		{"known", "elsewhere", "paid", true}, {"never seen", "elsewhere", "paid", true},
	} {
		finish := f.holdTx(t, func(tx Tx) error {
			_, _, err := f.guards(t).Transition(t.Context(), tx, hold.entity, hold.from, hold.to)
			return err
		})
		for _, from := range []string{"", "open", "paid", "elsewhere"} {
			f.mustWait(t, func(ctx context.Context, tx Tx) error {
				_, _, err := f.guards(t).Transition(ctx, tx, hold.entity, from, "closed")
				return err
			})
		}
		finish(hold.commit)
	}
	f.moves(t, "known", "open", "paid", "paid", true)
	f.moves(t, "fresh", "", "open", "open", true)
	f.moves(t, "never seen", "", "open", "open", true)
}

func raceTransitionTwo[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, race := range []struct {
		commit bool
		from   string
		state  string
		moved  bool
	}{{true, "open", "paid", false}, {true, "paid", "closed", true}, {false, "open", "closed", true}, {false, "paid", "open", false}} {
		for range rounds / 2 {
			entity := fmt.Sprintf("order-%d-%d", i, f.next())
			f.moves(t, entity, "", "open", "open", true)
			finish := f.holdTx(t, func(tx Tx) error {
				_, _, err := f.guards(t).Transition(t.Context(), tx, entity, "open", "paid")
				return err
			})
			var g errgroup.Group
			var state string
			var moved bool
			g.Go(func() (err error) {
				state, moved, err = f.tryMove(t, entity, race.from, "closed")
				return err
			})
			finish(race.commit)
			ok(t, g.Wait())
			if state != race.state || moved != race.moved {
				t.Fatalf("from %q after a move to paid (committed: %v): in state %q, moved: %v", race.from, race.commit, state, moved)
			}
		}
	}
}

func raceTransitionFirst[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds / 2 {
		entity, answers := fmt.Sprint("order-", f.next()), make([]bool, racers)
		racing(t, func(i int) error {
			state, moved, err := f.tryMove(t, entity, "", "paid")
			if err == nil && state != "paid" {
				err = fmt.Errorf("the state is %q after a move to paid", state)
			}
			answers[i] = moved
			return err
		})
		if n := count(answers); n != 1 {
			t.Fatalf("%d of %d moved first", n, racers)
		}
	}
}

func raceTransitionFork[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds / 2 {
		entity, answers, states := fmt.Sprint("order-", f.next()), make([]bool, racers), make([]string, racers)
		f.moves(t, entity, "", "open", "open", true)
		racing(t, func(i int) (err error) {
			states[i], answers[i], err = f.tryMove(t, entity, "open", []string{"paid", "cancelled"}[i%2])
			return err
		})
		if n := count(answers); n != 1 || len(slices.Compact(states)) != 1 {
			t.Fatalf("%d moves from one state, to %q", n, states)
		}
		winner := slices.Index(answers, true)
		if states[0] != []string{"paid", "cancelled"}[winner%2] {
			t.Fatalf("the state is %q, moved by the other one", states[0])
		}
	}
}
