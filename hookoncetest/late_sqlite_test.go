package hookoncetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
)

// lateOnSQLite has the handlers of docs/outbox.md, as the page shows them.
func lateOnSQLite(t *testing.T) late {
	db := openShop(t)
	store := shopStore(t, db)
	if _, err := db.ExecContext(t.Context(), createEffects); err != nil {
		t.Fatal(err)
	}
	effect := func(what string) func(context.Context, *sql.Tx, *hookonce.Event) error {
		return func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
			if err := hookoncetest.Fail(ctx); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, insertEffect, what, ev.Key, ev.Resource)
			return err
		}
	}
	save, pack, chargeFee := effect("save"), effect("pack"), effect("fee")

	keep := func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		newer, err := hookonce.Newer(ctx, tx, ev)
		if err != nil || !newer {
			return err // a newer state was applied: nothing to do, and nothing wrong
		}
		return save(ctx, tx, ev)
	}

	ship := func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		order := hookonce.NormalKey(hookonce.JoinKey("order", ev.Source, ev.Scope))
		if order == "" {
			return hookonce.Permanent(errors.New("the event names no order")) // all that name none would be one
		}
		state, move, err := hookonce.Transition(ctx, tx, order, "paid", "shipped")
		switch {
		case err != nil:
			return err
		case move == hookonce.Moved:
			return pack(ctx, tx, ev)
		case move == hookonce.AlreadyThere, state == "delivered":
			return nil // said again; also when the order has gone on
		case state == "":
			return fmt.Errorf("order %s is not paid yet", ev.Resource) // failed: the sender comes back, and by then it may be
		}
		return hookonce.Permanent(fmt.Errorf("order %s is %s and cannot be shipped", ev.Resource, state)) // no retry changes that
	}

	arrived := func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
		payout := hookonce.JoinKey(ev.Source, ev.Scope)
		if payout == "" {
			return hookonce.Permanent(errors.New("the event names no payout"))
		}
		first, err := hookonce.Once(ctx, tx, "payout.fee", payout)
		if err != nil || !first {
			return err
		}
		return chargeFee(ctx, tx, ev)
	}

	return newLate(store, keep, ship, arrived, func(what, event, object string) (n int, err error) {
		err = db.QueryRowContext(context.Background(), countEffects, what, event, object).Scan(&n)
		return n, err
	})
}

func TestLateTwiceOutOfOrderOnSQLite(t *testing.T) { testLate(t, lateOnSQLite(t)) }
