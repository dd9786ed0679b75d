package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
)

func TestMigrateAndCheck(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "")
	store := pgstore.New(pool, pgstore.WithSchema("own_name"))
	if err := store.Check(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "own_name") {
		t.Errorf("Check = %v", err)
	}
	for range 2 {
		pgtest.Migrate(t, pool, "own_name")
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	mustClaim(t, store, "evt_1", hookonce.Acquired)
}

// A program that was deployed before its tables hears what to do, whatever it does first.
func TestMissingTablesAreNamed(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "")
	store := pgstore.New(pool)
	ctx, req, c := t.Context(), request("evt_1"), hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	effect := hookonce.QueuedEffect{Effect: hookonce.Effect{Ref: req.Ref, Name: "mail"}, ID: 1, Token: 1}
	inTx := func(work func(pgx.Tx) error) func() error {
		return func() error { return pgx.BeginFunc(ctx, pool, work) }
	}
	for name, call := range map[string]func() error{
		"Within":   func() error { _, err := store.Within(ctx, req, nil); return err },
		"Claim":    func() error { _, err := store.Claim(ctx, req); return err },
		"Complete": func() error { return store.Complete(ctx, c) },
		"Fail":     func() error { return store.Fail(ctx, c, hookonce.Failure{}) },
		"Extend":   func() error { _, err := store.Extend(ctx, c, time.Minute); return err },
		"Lookup":   func() error { _, err := store.Lookup(ctx, c.Ref); return err },
		"Purge": func() error {
			_, err := store.Purge(ctx, hookonce.PurgeRequest{Before: time.Now(), Limit: 1})
			return err
		},
		"ClaimTx": inTx(func(tx pgx.Tx) error { _, err := store.ClaimTx(ctx, tx, req); return err }),

		"CompleteWith": func() error { return store.CompleteWith(ctx, c, hookonce.Response{}) },
		"Response":     func() error { _, err := store.Response(ctx, c.Ref); return err },
		"KeepResponse": inTx(func(tx pgx.Tx) error { return store.KeepResponse(ctx, tx, c.Ref, hookonce.Response{}) }),

		"Newer":      inTx(func(tx pgx.Tx) error { _, err := store.Newer(ctx, tx, "order", hookonce.Version(1)); return err }),
		"Transition": inTx(func(tx pgx.Tx) error { _, _, err := store.Transition(ctx, tx, "order", "", "paid"); return err }),

		"Enqueue": inTx(func(tx pgx.Tx) error { return store.Enqueue(ctx, tx, effect.Effect) }),
		"TakeEffects": func() error {
			_, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute})
			return err
		},
		"CompleteEffect": func() error { return store.CompleteEffect(ctx, effect) },
		"FailEffect":     func() error { return store.FailEffect(ctx, effect, hookonce.Failure{}, time.Now()) },
		"ExtendEffect":   func() error { _, err := store.ExtendEffect(ctx, effect, time.Minute); return err },
		"Effects":        func() error { _, err := store.Effects(ctx, hookonce.StateDead, 0, 1); return err },
		"RedriveEffect":  func() error { return store.RedriveEffect(ctx, 1) },
		"Purge effects": func() error {
			_, err := store.Purge(ctx, hookonce.PurgeRequest{Kind: hookonce.PurgeEffects, Before: time.Now(), Limit: 1})
			return err
		},
	} {
		err := call()
		if !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "hookonce migrate") {
			t.Errorf("%s = %v, want ErrSchemaMissing and what to do", name, err)
		}
	}
}

// A table of the handler's own that is missing is no fault of the store's schema.
func TestAMissingTableOfTheHandler(t *testing.T) {
	store, _ := newStore(t)
	_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
		_, err := tx.Exec(t.Context(), "DELETE FROM invoices")
		return err
	})
	if err == nil || errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Errorf("error is %v", err)
	}
}

func TestNewRefusesABadSchema(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("accepted")
		}
	}()
	pgstore.New(nil, pgstore.WithSchema(`a"; DROP TABLE users; --`))
}

// Without a server every method fails, and no error can be mistaken for an answer.
func TestUnreachableServer(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	store := pgstore.New(open(t, dsn, ""))
	p.Close()
	_, within := store.Within(t.Context(), request("evt_1"), func(pgx.Tx, hookonce.Claim) error { return nil })
	_, claim := store.Claim(t.Context(), request("evt_1"))
	_, lookup := store.Lookup(t.Context(), request("evt_1").Ref)
	for name, err := range map[string]error{"Within": within, "Claim": claim, "Lookup": lookup} {
		if err == nil {
			t.Errorf("%s succeeded", name)
		}
		for _, known := range []error{hookonce.ErrBusy, hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrUnknownOutcome} {
			if errors.Is(err, known) {
				t.Errorf("%s = %v", name, err)
			}
		}
	}
}

// An event's type is for people who look at the table. One that the database refuses must not make
// the event impossible to handle.
func TestStrangeTypes(t *testing.T) {
	store, _ := newStore(t)
	for key, text := range map[string]string{"nul": "a\x00b", "utf8": "a\xffb"} {
		req := request(key)
		req.Type = text
		c, err := store.Within(t.Context(), req, func(pgx.Tx, hookonce.Claim) error { return nil })
		if err != nil || c.Type != "a\uFFFDb" {
			t.Errorf("%s: %+v, %v", key, c, err)
		}
		stored, err := store.Lookup(t.Context(), req.Ref)
		if err != nil || stored.Type != c.Type {
			t.Errorf("%s: stored %+v, %v", key, stored, err)
		}
	}
}

// No claim is kept where advisory locks lock nothing, nor where nobody can tell what became of a
// COMMIT.
func TestCheckRefusesLocksThatLockNothing(t *testing.T) {
	dsn := pgtest.DSN(t)
	pgtest.Migrate(t, open(t, dsn, ""), "")
	for through, says := range map[string]string{
		pgproxy.WithoutLocks(t, dsn):          "two transactions were given the same one at once",
		pgproxy.New(t, dsn, pgproxy.Yugabyte): "cannot keep claims in YugabyteDB",
	} {
		if err := pgstore.New(open(t, through, "")).Check(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Check: %v, want a refusal that says %q", err, says)
		}
	}
}
