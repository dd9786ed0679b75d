package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

func concurrentGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"one of many is newer", raceNewerSame[Tx]},
		{"all of one second are newer", raceNewerSecond[Tx]},
		{"of many versions the highest stands", raceNewerMany[Tx]},
		{"one of many moves first", raceTransitionFirst[Tx]},
		{"of two moves to different states one is made", raceTransitionFork[Tx]},
	}
}

// waitingGuardCases are about transactions that wait for each other.
func waitingGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a version waits for another one of the resource", raceNewerWaits[Tx]},
		{"the answer is about what was committed first", raceNewerTwo[Tx]},
		{"a move waits for another one of the entity", raceTransitionWaits[Tx]},
		{"the move is from where the first one went", raceTransitionTwo[Tx]},
	}
}

func raceNewerWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.newer(t, "known", 1, true)
	for _, resource := range []string{"known", "fresh"} {
		finish := f.holdTx(t, f.versions(t, resource, hookonce.Version(5)))
		for _, version := range []int64{4, 5, 6} {
			f.mustWait(t, f.versions(t, resource, hookonce.Version(version)))
		}
		finish(true)
		f.newer(t, resource, 5, false)
	}
	// So it does when the one before it changed nothing.
	finish := f.holdTx(t, f.versions(t, "known", hookonce.Version(2)))
	f.mustWait(t, f.versions(t, "known", hookonce.Version(7)))
	finish(true)
}

func raceNewerTwo[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, race := range []struct {
		first, second hookonce.Rank
		commit, newer bool
	}{
		{hookonce.Version(5), hookonce.Version(6), true, true}, {hookonce.Version(6), hookonce.Version(5), true, false},
		{hookonce.Version(5), hookonce.Version(5), true, false}, {tick(5), tick(5), true, true}, {tick(6), tick(5), true, false},
		{tick(5), hookonce.Version(4), true, true}, {hookonce.Version(6), hookonce.Version(5), false, true},
		{hookonce.Version(5), hookonce.Version(6), false, true}, {tick(6), tick(5), false, true},
	} {
		for _, known := range []bool{false, true} {
			for range rounds / 2 {
				resource := fmt.Sprintf("order-%d-%v-%d", i, known, f.next())
				if known {
					f.newer(t, resource, -1, true)
				}
				finish := f.holdTx(t, f.versions(t, resource, race.first))
				var g errgroup.Group
				var newer bool
				g.Go(func() (err error) {
					newer, err = f.tryNewer(t, resource, race.second)
					return err
				})
				finish(race.commit)
				ok(t, g.Wait())
				if newer != race.newer {
					t.Fatalf("after %v (committed: %v) %v is newer: %v", race.first, race.commit, race.second, newer)
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
			answers[i], err = f.tryNewer(t, resource, hookonce.Version(1))
			return err
		})
		if n := count(answers); n != 1 {
			t.Fatalf("%d of %d copies of one version were newer", n, racers)
		}
	}
}

func raceNewerSecond[Tx any](t *testing.T, f *txFixture[Tx]) {
	answers := make([]bool, racers)
	racing(t, func(i int) (err error) {
		answers[i], err = f.tryNewer(t, "order-1", tick(1))
		return err
	})
	if n := count(answers); n != racers {
		t.Fatalf("%d of %d states of one second were newer", n, racers)
	}
	f.ranked(t, "order-1", tick(0), false)
}

// raceNewerMany also checks with an effect per version that one that answered false did not happen.
func raceNewerMany[Tx any](t *testing.T, f *txFixture[Tx]) {
	answers := make([]bool, racers)
	racing(t, func(i int) error {
		return f.retried(t, func(tx Tx) (err error) {
			answers[i], err = f.guards(t).Newer(t.Context(), tx, "order-1", hookonce.Version(int64(i)))
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

func raceTransitionWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "known", "", "open", "open", hookonce.Moved)
	for _, hold := range []struct {
		entity, from, to string
		commit           bool
	}{
		{"known", "open", "paid", false}, {"fresh", "", "open", false},
		{"known", "elsewhere", "paid", true}, {"never seen", "elsewhere", "paid", true},
	} {
		finish := f.holdTx(t, f.transitions(t, hold.entity, hold.from, hold.to))
		for _, from := range []string{"", "open", "paid", "elsewhere"} {
			f.mustWait(t, f.transitions(t, hold.entity, from, "closed"))
		}
		finish(hold.commit)
	}
	f.moves(t, "known", "open", "paid", "paid", hookonce.Moved)
	f.moves(t, "fresh", "", "open", "open", hookonce.Moved)
	f.moves(t, "never seen", "", "open", "open", hookonce.Moved)
}

func raceTransitionTwo[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, race := range []struct {
		commit bool
		from   string
		state  string
		move   hookonce.Move
	}{
		{true, "open", "paid", hookonce.Impossible}, {true, "paid", "closed", hookonce.Moved},
		{false, "open", "closed", hookonce.Moved}, {false, "paid", "open", hookonce.Impossible},
	} {
		for range rounds / 2 {
			entity := fmt.Sprintf("order-%d-%d", i, f.next())
			f.moves(t, entity, "", "open", "open", hookonce.Moved)
			finish := f.holdTx(t, f.transitions(t, entity, "open", "paid"))
			var g errgroup.Group
			var state string
			var move hookonce.Move
			g.Go(func() (err error) {
				state, move, err = f.tryMove(t, entity, race.from, "closed")
				return err
			})
			finish(race.commit)
			ok(t, g.Wait())
			if state != race.state || move != race.move {
				t.Fatalf("from %q after a move to paid (committed: %v): %s, in state %q", race.from, race.commit, move, state)
			}
		}
	}
}

func raceTransitionFirst[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds / 2 {
		entity, answers := fmt.Sprint("order-", f.next()), make([]bool, racers)
		racing(t, func(i int) error {
			state, move, err := f.tryMove(t, entity, "", "paid")
			if err == nil && (state != "paid" || move == hookonce.Impossible) {
				err = fmt.Errorf("%s, in state %q, after a move to paid", move, state)
			}
			answers[i] = move == hookonce.Moved
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
		f.moves(t, entity, "", "open", "open", hookonce.Moved)
		racing(t, func(i int) (err error) {
			to := []string{"paid", "cancelled"}[i%2]
			move := hookonce.Move("")
			states[i], move, err = f.tryMove(t, entity, "open", to)
			if answers[i] = move == hookonce.Moved; err == nil && (move == hookonce.Impossible) != (states[i] != to) {
				err = fmt.Errorf("to %s: %s, in state %q", to, move, states[i])
			}
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

func purgeGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"versions go by their own kind", purgeVersions[Tx]},
		{"states go by their own kind", purgeStates[Tx]},
		{"a time that no clock can have shown is no age", purgeGuardClocks[Tx]},
	}
}

// purgeKind purges what is old by now.
func (f *txFixture[Tx]) purgeKind(t testing.TB, kind hookonce.PurgeKind, limit, want int) {
	t.Helper()
	purgeOf(t, f, hookonce.PurgeRequest{Kind: kind, Before: f.clock.Now(), Limit: limit}, want)
}

// others are all kinds but one.
func (f *txFixture[Tx]) others(t testing.TB, kind hookonce.PurgeKind) {
	t.Helper()
	for _, k := range hookonce.PurgeKinds() {
		if k != kind {
			f.purgeKind(t, k, 100, 0)
		}
	}
}

func purgeVersions[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, resource := range awkwardNames() {
		f.newer(t, resource, 7, true)
	}
	f.newer(t, "young", 7, true)
	f.purgeKind(t, hookonce.PurgeVersions, 100, 0) // the bound itself stays
	f.clock.Advance(time.Second)
	f.newer(t, "young", 8, true)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.others(t, hookonce.PurgeVersions)
	f.newer(t, "young", 9, true)
	n := len(awkwardNames())
	purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeVersions, Before: f.clock.Now(), Limit: 100, Dry: true}, n)
	for _, step := range [][2]int{{0, 0}, {-1, 0}, {5, 5}, {n, n - 5}, {n, 0}} {
		f.purgeKind(t, hookonce.PurgeVersions, step[0], step[1])
	}
	f.newer(t, "a", 1, true)
	f.newer(t, "young", 9, false)
}

func purgeStates[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, entity := range awkwardNames() {
		f.moves(t, entity, "", "paid", "paid", hookonce.Moved)
	}
	f.moves(t, "young", "", "paid", "paid", hookonce.Moved)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.others(t, hookonce.PurgeStates)
	f.moves(t, "young", "paid", "shipped", "shipped", hookonce.Moved)
	n := len(awkwardNames())
	for _, step := range [][2]int{{0, 0}, {5, 5}, {n, n - 5}, {n, 0}} {
		f.purgeKind(t, hookonce.PurgeStates, step[0], step[1])
	}
	f.moves(t, "a", "", "ordered", "ordered", hookonce.Moved)
	f.moves(t, "young", "", "paid", "shipped", hookonce.Impossible)
}

// purgeGuardClocks has a process whose clock says 1970 do everything that leaves a row.
func purgeGuardClocks[Tx any](t *testing.T, f *txFixture[Tx]) {
	wrong := *f
	wrong.clock = &Clock{now: time.Unix(1, 0).UTC()}
	wrong.TxStore = wrong.another(0)
	wrong.newer(t, "order-1", 7, true)
	wrong.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	if _, has := wrong.TxStore.(hookonce.Outbox[Tx]); has {
		wrong.carryOut(t, "evt_1")
	}
	for _, kind := range hookonce.PurgeKinds() {
		f.purgeKind(t, kind, 100, 0)
	}
	f.newer(t, "order-1", 7, false)
	f.moves(t, "order-1", "", "paid", "paid", hookonce.AlreadyThere)
}
