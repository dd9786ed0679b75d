package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
)

func transitionCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"moves from one state to another", transitionMoves[Tx]},
		{"does not move from another state", transitionWrongFrom[Tx]},
		{"entities have states of their own", transitionEntities[Tx]},
		{"a transaction sees its own", transitionTwice[Tx]},
		{"a rollback forgets", transitionRollback[Tx]},
		{"what can not be stored is refused", transitionInvalid[Tx]},
		{"an ended context moves nothing", transitionCancelled[Tx]},
	}
}

// moves asks in a transaction of its own, and checks whether it moved and the state after it.
func (f *txFixture[Tx]) moves(t testing.TB, entity, from, to, state string, moved bool) {
	t.Helper()
	gotState, gotMoved, err := f.tryMove(t, entity, from, to)
	ok(t, err)
	if gotState != state || gotMoved != moved {
		t.Fatalf("%q from %q to %q: in state %q, moved: %v; want %q, %v", entity, from, to, gotState, gotMoved, state, moved)
	}
}

func (f *txFixture[Tx]) tryMove(t testing.TB, entity, from, to string) (state string, moved bool, err error) {
	err = f.retried(t, func(tx Tx) (err error) {
		state, moved, err = f.guards(t).Transition(t.Context(), tx, entity, from, to)
		return err
	})
	return state, moved, err
}

func transitionMoves[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "", "paid", "paid", true)
	f.moves(t, "order-1", "paid", "shipped", "shipped", true)
	f.moves(t, "order-1", "paid", "shipped", "shipped", false) // a copy
	f.moves(t, "order-1", "shipped", "paid", "paid", true)     // and back, if that is the machine
	f.moves(t, "order-1", "paid", "shipped", "shipped", true)
	f.moves(t, "order-1", "", "paid", "shipped", false)
}

func transitionWrongFrom[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "paid", "shipped", "", false)
	f.moves(t, "order-1", "paid", "shipped", "", false)
	f.moves(t, "order-1", "", "paid", "paid", true)
	f.moves(t, "order-1", "shipped", "returned", "paid", false)
	f.moves(t, "order-1", "Paid", "shipped", "paid", false)
	f.moves(t, "order-1", "paid", "shipped", "shipped", true)
}

func transitionEntities[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i, name := range awkwardNames() {
		f.moves(t, name, "", fmt.Sprint("state ", i), fmt.Sprint("state ", i), true)
	}
	for i, name := range awkwardNames() {
		f.moves(t, name, "", "seen", fmt.Sprint("state ", i), false)
	}
	last := ""
	for _, state := range awkwardNames() {
		f.moves(t, "traveller", last, state, state, true)
		last = state
	}
}

func transitionTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	ok(t, f.retried(t, func(tx Tx) error {
		for i, move := range [][2]string{{"", "paid"}, {"paid", "shipped"}, {"paid", "cancelled"}} {
			state, moved, err := f.guards(t).Transition(t.Context(), tx, "order-1", move[0], move[1])
			if err != nil {
				return err
			}
			if want := []string{"paid", "shipped", "shipped"}[i]; state != want || moved != (state == move[1]) {
				t.Fatalf("move %q: in state %q, moved: %v", move, state, moved)
			}
		}
		return nil
	}))
	f.moves(t, "order-1", "", "paid", "shipped", false)
}

func transitionRollback[Tx any](t *testing.T, f *txFixture[Tx]) {
	rollBack := func(from, to string) {
		refuses(t, f.inside(t, func(tx Tx) error {
			_, moved, err := f.guards(t).Transition(t.Context(), tx, "order-1", from, to)
			ok(t, err)
			if !moved {
				t.Fatalf("did not move from %q to %q", from, to)
			}
			return errDeclined
		}), errDeclined)
	}
	rollBack("", "paid")
	rollBack("", "paid")
	f.moves(t, "order-1", "", "paid", "paid", true)
	rollBack("paid", "shipped")
	f.moves(t, "order-1", "paid", "cancelled", "cancelled", true)
}

func transitionInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "order-1", "", "paid", "paid", true)
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
	f.moves(t, "order-1", "paid", "shipped", "shipped", true)
}

func transitionCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	err := f.inside(t, func(tx Tx) error {
		_, _, err := f.guards(t).Transition(ended(t), tx, "order-1", "", "paid")
		return err
	})
	refuses(t, err, context.Canceled)
	f.moves(t, "order-1", "", "paid", "paid", true)
}
