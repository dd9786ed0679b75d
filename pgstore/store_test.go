package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
)

func TestMigrateAndCheck(t *testing.T) {
	store := pgstore.New(open(t, pgtest.DSN(t), ""), pgstore.WithSchema("own_name"))
	if err := store.Check(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "own_name") {
		t.Errorf("Check = %v", err)
	}
	for range 2 {
		if err := store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	mustClaim(t, store, "evt_1", hookonce.Won)
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
	p.listener.Close()
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
