package hookoncetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
)

// lateOnPostgres has the handlers of docs/outbox.md, as the page shows them.
func lateOnPostgres(t *testing.T) late {
	pool, _ := openPostgres(t)
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	if _, err := pool.Exec(t.Context(), createEffects); err != nil {
		t.Fatal(err)
	}
	effect := func(what string) func(context.Context, pgx.Tx, *hookonce.Event) error {
		return func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
			if err := hookoncetest.Fail(ctx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, insertEffect, what, ev.Key, ev.Resource)
			return err
		}
	}
	save, pack, chargeFee := effect("save"), effect("pack"), effect("fee")

	keep := func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		newer, err := hookonce.Newer(ctx, tx, ev)
		if err != nil || !newer {
			return err // a newer state was applied: nothing to do, and nothing wrong
		}
		return save(ctx, tx, ev)
	}

	ship := func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
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

	arrived := func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
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
		err = pool.QueryRow(context.Background(), countEffects, what, event, object).Scan(&n)
		return n, err
	})
}

func TestLateTwiceOutOfOrderOnPostgres(t *testing.T) { testLate(t, lateOnPostgres(t)) }
