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
	err := f.inside(t, func(tx Tx) error {
		_, _, err := f.guards(t).Transition(ended(t), tx, "order-1", "", "paid")
		return err
	})
	refuses(t, err, context.Canceled)
	f.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
}
