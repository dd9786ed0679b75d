package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// RunGuards checks that a store tells newer from older, and moves named state machines, in the caller's
// transaction and between transactions at once. The stores that cfg opens must implement
// [hookonce.Guards].
//
// A store may refuse a transaction for the sake of another one, as databases do that serialize: the suite
// then rolls back and tries again. What it never accepts is a wrong answer.
func RunGuards[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "newer", newerCases[Tx]())
	cfg.cases(t, "transition", transitionCases[Tx]())
	cfg.cases(t, "purge guards", purgeGuardCases[Tx]())
	cfg.cases(t, "concurrent guards", concurrentGuardCases[Tx]())
	if cfg.AtCommit {
		cfg.cases(t, "overlapping guards", overlapGuardCases[Tx]())
	} else {
		cfg.cases(t, "waiting guards", waitingGuardCases[Tx]())
	}
}

// invalidNames cannot be stored, as far as names are concerned.
func invalidNames() map[string]string {
	return map[string]string{
		"NUL": "a\x00b", "not UTF-8": "a\xff", "a line break": "a\nb", "256 bytes": strings.Repeat("n", hookonce.MaxKeyLen+1),
	}
}

func newerCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"higher is newer than all before", newerOrder[Tx]},
		{"an equal time is newer", newerTimes[Tx]},
		{"a rank of another kind is newer and takes its place", newerKinds[Tx]},
		{"without a rank it is newer and leaves nothing behind", newerWithoutRank[Tx]},
		{"every number is a version", newerNumbers[Tx]},
		{"resources have versions of their own", newerResources[Tx]},
		{"a transaction sees its own", newerTwice[Tx]},
		{"a rollback forgets", newerRollback[Tx]},
		{"commits with the claim and the effect", newerWithin[Tx]},
		{"what cannot be stored is refused", newerInvalid[Tx]},
		{"an ended context answers nothing", newerCancelled[Tx]},
	}
}

// newer asks about a version in a transaction of its own.
func (f *txFixture[Tx]) newer(t testing.TB, resource string, version int64, want bool) {
	t.Helper()
	f.ranked(t, resource, hookonce.Version(version), want)
}

// ranked asks in a transaction of its own.
func (f *txFixture[Tx]) ranked(t testing.TB, resource string, rank hookonce.Rank, want bool) {
	t.Helper()
	newer, err := f.tryNewer(t, resource, rank)
	ok(t, err)
	if newer != want {
		t.Fatalf("%v of %q is newer: %v, want %v", rank, resource, newer, want)
	}
}

func (f *txFixture[Tx]) tryNewer(t testing.TB, resource string, rank hookonce.Rank) (newer bool, err error) {
	err = f.retried(t, func(tx Tx) (err error) {
		newer, err = f.guards(t).Newer(t.Context(), tx, resource, rank)
		return err
	})
	return newer, err
}

// versions asks whether a rank of the resource is newer, whatever the answer.
func (f *txFixture[Tx]) versions(t testing.TB, resource string, rank hookonce.Rank) func(context.Context, Tx) error {
	return func(ctx context.Context, tx Tx) error { return errorOf(f.guards(t).Newer(ctx, tx, resource, rank)) }
}

func newerOrder[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, step := range []struct {
		version int64
		newer   bool
	}{{3, true}, {3, false}, {2, false}, {4, true}, {3, false}, {4, false}, {100, true}, {99, false}} {
		f.newer(t, "order-1", step.version, step.newer)
	}
}

// newerTimes: nothing says which of two states of one second is newer, and none may be lost.
func newerTimes[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, step := range []struct {
		at    int64
		newer bool
	}{{3, true}, {3, true}, {2, false}, {3, true}, {4, true}, {3, false}, {4, true}, {-1, false}} {
		f.ranked(t, "order-1", tick(step.at), step.newer)
	}
	f.ranked(t, "order-2", tick(-2), true)
	f.ranked(t, "order-2", tick(-3), false)
	f.ranked(t, "order-2", tick(-2), true)
}

// newerKinds: a version is far below all times as a number, and no version would be newer than a time.
func newerKinds[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, step := range []struct {
		rank  hookonce.Rank
		newer bool
	}{
		{hookonce.Version(7), true},
		{tick(1000), true}, {tick(999), false}, {tick(1000), true}, // the provider has times now
		{hookonce.Version(5), true}, {hookonce.Version(5), false}, {hookonce.Version(4), false}, {hookonce.Version(6), true},
		{hookonce.Rank{Kind: hookonce.RankTime, N: 6}, true}, {hookonce.Rank{Kind: hookonce.RankTime, N: 6}, true}, {hookonce.Version(6), true},
	} {
		newer, err := f.tryNewer(t, "order-1", step.rank)
		ok(t, err)
		if newer != step.newer {
			t.Fatalf("step %d: %v is newer: %v, want %v", i, step.rank, newer, step.newer)
		}
	}
}

func newerWithoutRank[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.newer(t, "order-1", 5, true)
	for range 2 {
		f.ranked(t, "order-1", hookonce.Rank{}, true)
		f.ranked(t, "", hookonce.Rank{}, true) // an event about nothing, such as the account's balance
		f.ranked(t, "order-1", hookonce.Timestamp(time.Time{}), true)
	}
	f.newer(t, "order-1", 5, false)
	f.newer(t, "order-2", math.MinInt64, true)
}

func newerNumbers[Tx any](t *testing.T, f *txFixture[Tx]) {
	ascending := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 53, -2, -1, 0, 1, 1<<53 + 1, 1<<53 + 2, math.MaxInt64 - 1, math.MaxInt64}
	for i, version := range ascending {
		f.newer(t, "order-1", version, true)
		f.newer(t, "order-1", version, false)
		if i > 0 {
			f.newer(t, "order-1", ascending[i-1], false)
		}
	}
}

func newerResources[Tx any](t *testing.T, f *txFixture[Tx]) {
	names := awkwardNames()
	for i, name := range names {
		f.newer(t, name, int64(len(names)-i), true)
	}
	for i, name := range names {
		f.newer(t, name, int64(len(names)-i), false)
		f.newer(t, name, int64(len(names)-i+1), true)
	}
}

func newerTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	var answers []bool
	ok(t, f.retried(t, func(tx Tx) error {
		answers = nil
		for _, version := range []int64{2, 2, 1, 3, 2} {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", hookonce.Version(version))
			if err != nil {
				return err
			}
			answers = append(answers, newer)
		}
		return nil
	}))
	if want := []bool{true, false, false, true, false}; !slices.Equal(answers, want) {
		t.Fatalf("answers %v, want %v", answers, want)
	}
	f.newer(t, "order-1", 3, false)
}

func newerRollback[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, first := range []bool{true, false} {
		refuses(t, f.inside(t, func(tx Tx) error {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", hookonce.Version(9))
			ok(t, err)
			if !newer {
				t.Fatal("what was rolled back is remembered")
			}
			return errDeclined
		}), errDeclined)
		f.newer(t, "order-1", 1, first)
	}
	f.newer(t, "order-1", 2, true)
}

func newerWithin[Tx any](t *testing.T, f *txFixture[Tx]) {
	apply := func(key string, version int64, failure error) error {
		_, err := f.Within(t.Context(), request(key), func(tx Tx, _ hookonce.Claim) error {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", hookonce.Version(version))
			if err == nil && newer {
				err = f.db.Effect(t.Context(), tx, fmt.Sprint("version ", version))
			}
			return errors.Join(err, failure)
		})
		return err
	}
	refuses(t, apply("evt_2", 2, errDeclined), errDeclined)
	ok(t, apply("evt_1", 1, nil))
	ok(t, apply("evt_2", 2, nil))
	ok(t, apply("evt_0", 0, nil))
	f.effects(t, map[string]int{"version 1": 1, "version 2": 1})
}

func newerInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	names := invalidNames()
	names["empty"] = ""
	for what, name := range names {
		for _, rank := range []hookonce.Rank{hookonce.Version(1), tick(1)} {
			if _, err := f.tryNewer(t, name, rank); !errors.Is(err, hookonce.ErrInvalidRef) {
				t.Fatalf("%s: error is %v, want ErrInvalidRef", what, err)
			}
		}
	}
	for _, rank := range []hookonce.Rank{{N: 1}, {Kind: "Version", N: 1}, {Kind: "age"}} {
		if _, err := f.tryNewer(t, "order-1", rank); !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Fatalf("%v: error is %v, want ErrInvalidRef", rank, err)
		}
	}
	f.newer(t, "order-1", math.MinInt64, true)
}

func newerCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.inside(t, func(tx Tx) error { return f.versions(t, "order-1", hookonce.Version(1))(ended(t), tx) }), context.Canceled)
	f.newer(t, "order-1", 1, true)
}

func transitionCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"moves from one state to another", transitionMoves[Tx]},
		{"does not move from another state", transitionWrongFrom[Tx]},
		{"done, and impossible, are told apart", transitionOutcomes[Tx]},
		{"entities have states of their own", transitionEntities[Tx]},
		{"a transaction sees its own", transitionTwice[Tx]},
		{"a rollback forgets", transitionRollback[Tx]},
		{"what cannot be stored is refused", transitionInvalid[Tx]},
		{"an ended context moves nothing", transitionCancelled[Tx]},
	}
}

// moves asks in a transaction of its own, and checks what came of it and the state after it.
func (f *txFixture[Tx]) moves(t testing.TB, entity, from, to, state string, move hookonce.Move) {
	t.Helper()
	gotState, gotMove, err := f.tryMove(t, entity, from, to)
	ok(t, err)
	if gotState != state || gotMove != move {
		t.Fatalf("%q from %q to %q: %s, in state %q; want %s, %q", entity, from, to, gotMove, gotState, move, state)
	}
}

func (f *txFixture[Tx]) tryMove(t testing.TB, entity, from, to string) (state string, move hookonce.Move, err error) {
	err = f.retried(t, func(tx Tx) (err error) {
		state, move, err = f.guards(t).Transition(t.Context(), tx, entity, from, to)
		return err
	})
	return state, move, err
}

// transitions asks for a move, whatever comes of it.
func (f *txFixture[Tx]) transitions(t testing.TB, entity, from, to string) func(context.Context, Tx) error {
	return func(ctx context.Context, tx Tx) error {
		_, _, err := f.guards(t).Transition(ctx, tx, entity, from, to)
		return err
	}
}

func transitionMoves[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.Moved)
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.AlreadyThere) // a copy
	f.moves(t, "order-1", "shipped", "paid", "paid", hookonce.Moved)           // and back, if that is the machine
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.Moved)
	f.moves(t, "order-1", "", "paid", "shipped", hookonce.Impossible)
}

func transitionWrongFrom[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "paid", "shipped", "", hookonce.Impossible)
	f.moves(t, "order-1", "paid", "shipped", "", hookonce.Impossible)
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	f.moves(t, "order-1", "shipped", "returned", "paid", hookonce.Impossible)
	f.moves(t, "order-1", "Paid", "shipped", "paid", hookonce.Impossible)
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.Moved)
}

// transitionOutcomes: the order is shipped; that it was shipped is said again, also when it has gone on.
func transitionOutcomes[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "paid", "shipped", "", hookonce.Impossible) // early: it waits for the payment
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.Moved)
	for range 2 {
		f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.AlreadyThere)
	}
	f.moves(t, "order-1", "shipped", "delivered", "delivered", hookonce.Moved)
	for range 2 {
		f.moves(t, "order-1", "paid", "shipped", "delivered", hookonce.Impossible)
		f.moves(t, "order-1", "", "delivered", "delivered", hookonce.AlreadyThere)
		f.moves(t, "order-1", "", "paid", "delivered", hookonce.Impossible)
	}
	f.moves(t, "order-1", "delivered", "Delivered", "Delivered", hookonce.Moved)
	f.moves(t, "order-1", "paid", "delivered", "Delivered", hookonce.Impossible)
}

func transitionEntities[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, name := range awkwardNames() {
		f.moves(t, name, "", fmt.Sprint("state ", i), fmt.Sprint("state ", i), hookonce.Moved)
	}
	for i, name := range awkwardNames() {
		f.moves(t, name, "", "seen", fmt.Sprint("state ", i), hookonce.Impossible)
	}
	last := ""
	for _, state := range awkwardNames() {
		f.moves(t, "traveller", last, state, state, hookonce.Moved)
		last = state
	}
}

func transitionTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	ok(t, f.retried(t, func(tx Tx) error {
		for i, move := range [][2]string{{"", "paid"}, {"paid", "shipped"}, {"paid", "shipped"}, {"paid", "cancelled"}} {
			state, came, err := f.guards(t).Transition(t.Context(), tx, "order-1", move[0], move[1])
			if err != nil {
				return err
			}
			want := []hookonce.Move{hookonce.Moved, hookonce.Moved, hookonce.AlreadyThere, hookonce.Impossible}[i]
			if in := []string{"paid", "shipped", "shipped", "shipped"}[i]; state != in || came != want {
				t.Fatalf("move %q: %s, in state %q; want %s, %q", move, came, state, want, in)
			}
		}
		return nil
	}))
	f.moves(t, "order-1", "", "paid", "shipped", hookonce.Impossible)
}

func transitionRollback[Tx any](t *testing.T, f *txFixture[Tx]) {
	rollBack := func(from, to string) {
		refuses(t, f.inside(t, func(tx Tx) error {
			_, move, err := f.guards(t).Transition(t.Context(), tx, "order-1", from, to)
			ok(t, err)
			if move != hookonce.Moved {
				t.Fatalf("did not move from %q to %q", from, to)
			}
			return errDeclined
		}), errDeclined)
	}
	rollBack("", "paid")
	rollBack("", "paid")
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	rollBack("paid", "shipped")
	f.moves(t, "order-1", "paid", "cancelled", "cancelled", hookonce.Moved)
}

func transitionInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	for what, move := range map[string][3]string{
		"no entity": {"", "paid", "shipped"}, "to nowhere": {"order-1", "paid", ""}, "no move": {"order-1", "paid", "paid"},
	} {
		_, _, err := f.tryMove(t, move[0], move[1], move[2])
		if !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Fatalf("%s: error is %v, want ErrInvalidRef", what, err)
		}
	}
	for what, name := range invalidNames() {
		for _, move := range [][3]string{{name, "paid", "shipped"}, {"order-1", name, "shipped"}, {"order-1", "paid", name}} {
			if _, _, err := f.tryMove(t, move[0], move[1], move[2]); !errors.Is(err, hookonce.ErrInvalidRef) {
				t.Fatalf("%s: error is %v, want ErrInvalidRef", what, err)
			}
		}
	}
	f.moves(t, "order-1", "paid", "shipped", "shipped", hookonce.Moved)
}

func transitionCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.inside(t, func(tx Tx) error { return f.transitions(t, "order-1", "", "paid")(ended(t), tx) }), context.Canceled)
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
}
