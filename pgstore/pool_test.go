package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Handlers that read from the pool in which they hold their transactions wait for each other. The error says so.
func TestHandlersThatWaitForTheirOwnPoolAreTold(t *testing.T) {
	_, pool := newStore(t)
	small := open(t, strings.TrimSuffix(pool.Config().ConnString(), "&"), "pool_max_conns=2")
	store := pgstore.New(small)
	throwaway.InTime(t, func(ctx context.Context) (bool, error) {
		all := throwaway.NewBarrier(2)
		var handlers errgroup.Group
		for _, key := range []string{"evt_1", "evt_2"} {
			handlers.Go(func() error {
				_, err := store.Within(ctx, request(key), func(pgx.Tx, hookonce.Claim) error {
					all.Wait(ctx)
					return small.QueryRow(ctx, "SELECT 1").Scan(nil)
				})
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 2 connections of the pool were held by handlers") {
					return fmt.Errorf("%s: %w", key, err)
				}
				return nil
			})
		}
		err := handlers.Wait()
		return all.Passed(), err
	})
	if _, err := store.Within(t.Context(), request("evt_1"), failing); err == nil || strings.Contains(err.Error(), "held by handlers") {
		t.Errorf("a failure of another kind: %v", err)
	}
}

// A handler that runs out of time in a pool of one connection waited for itself only if somebody waited for the pool.
func TestSlowHandlersInAPoolOfOneAreNotBlamed(t *testing.T) {
	_, pool := newStore(t)
	small := open(t, strings.TrimSuffix(pool.Config().ConnString(), "&"), "pool_max_conns=1")
	store := pgstore.New(small)
	waits := func() int64 { stat := small.Stat(); return stat.EmptyAcquireCount() + stat.CanceledAcquireCount() }
	for key, c := range map[string]struct {
		work   func(context.Context) error
		blamed bool
	}{
		"slow":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false},
		"second": {func(ctx context.Context) error { return small.QueryRow(ctx, "SELECT 1").Scan(nil) }, true},
	} {
		throwaway.InTime(t, func(ctx context.Context) (bool, error) {
			begun := false
			_, err := store.Within(ctx, request(key), func(pgx.Tx, hookonce.Claim) error {
				before := waits()
				err := c.work(ctx)
				begun = !c.blamed || waits() > before
				return err
			})
			if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "held by handlers") != c.blamed {
				return begun, fmt.Errorf("%s: %w", key, err)
			}
			return begun, nil
		})
	}
}

// Leases are extended while handlers hold every connection of the pool.
func TestLeasesAreExtendedBesideAFullPool(t *testing.T) {
	plain, pool := newStore(t)
	store := pgstore.New(open(t, strings.TrimSuffix(pool.Config().ConnString(), "&"), "pool_max_conns=1"))
	req := request("leased")
	const lease = 12 * time.Second
	req.Lease = lease
	c, err := store.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	holder := hold(t, store, "evt_1")
	for n := range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), lease*2/3) // heartbeats come at each third: so much is left of the lease
		other, err := store.Extend(ctx, c, lease)                  // the pool is waited for during a part of that
		cancel()
		if err != nil || other.Lease.Equal(c.Lease) {
			t.Fatalf("extension %d, from %v to %v: %v", n, c.Lease, other.Lease, err)
		}
		c = other
	}
	holder.finish <- nil
	if err := <-holder.result; err != nil {
		t.Error(err)
	}
	if c, err = store.Extend(t.Context(), c, time.Minute); err != nil {
		t.Fatal(err)
	}
	if busy, err := plain.Claim(t.Context(), req); err != nil || busy.Verdict != hookonce.Busy {
		t.Errorf("the lease was lost: %v, %v", busy.Verdict, err)
	}
}

// PgBouncer gives what claims need in session and in transaction mode. In statement mode there are no
// transactions, and Check says so.
func TestModesOfPgBouncer(t *testing.T) {
	dsn := pgtest.DSN(t)
	pgtest.Migrate(t, open(t, dsn, ""), "")
	for mode, works := range map[string]bool{"session": true, "transaction": true, "statement": false} {
		store := pgstore.New(open(t, pgtest.PgBouncer(t, dsn, "pool_mode = "+mode), "default_query_exec_mode=exec"))
		err := store.Check(t.Context())
		if works {
			if err != nil {
				t.Errorf("%s mode: %v", mode, err)
			}
			mustClaim(t, store, mode, hookonce.Acquired)
			mustClaim(t, store, mode, hookonce.Duplicate)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "set its pool_mode") {
			t.Errorf("%s mode: Check: %v", mode, err)
		}
		if _, err := store.Within(t.Context(), request(mode), func(pgx.Tx, hookonce.Claim) error { return nil }); err == nil {
			t.Errorf("%s mode: a handler ran", mode)
		}
	}
}
