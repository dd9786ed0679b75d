package sqlstore_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/sqlstore"
)

func TestMigrateAndCheck(t *testing.T) {
	for name, c := range connections() {
		t.Run(name, func(t *testing.T) {
			p := c.places(t)(t)
			db := c.open(t, p.dsn, new(faults))
			s := sqlstore.New(db, c.dialect, sqlstore.WithSchema("shop"))
			if err := s.Check(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) {
				t.Fatalf("Check: %v, want ErrSchemaMissing", err)
			}
			must(t, s.Migrate(t.Context()))
			must(t, s.Migrate(t.Context()))
			must(t, s.Check(t.Context()))
			_, err := s.Claim(t.Context(), request)
			must(t, err)

			other := sqlstore.New(db, c.dialect)
			must(t, other.Migrate(t.Context()))
			if _, err := other.Lookup(t.Context(), request.Ref); !errors.Is(err, hookonce.ErrNotFound) {
				t.Errorf("the schemas share their claims: %v", err)
			}
		})
	}
}

// A database that is not there is an error that none of the package's own explains.
func TestADatabaseThatIsDown(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		must(t, f.db.Close())
		ctx, claim := t.Context(), hookonce.Claim{Ref: request.Ref, Token: 1}
		for name, call := range map[string]func() error{
			"Claim":    func() error { _, err := f.Claim(ctx, request); return err },
			"Complete": func() error { return f.Complete(ctx, claim) },
			"Fail":     func() error { return f.Fail(ctx, claim, hookonce.Failure{Err: errDeclined}) },
			"Extend":   func() error { _, err := f.Extend(ctx, claim, request.Lease); return err },
			"Lookup":   func() error { _, err := f.Lookup(ctx, request.Ref); return err },
			"Purge":    func() error { _, err := f.Purge(ctx, claim.UpdatedAt, 1); return err },
			"Within":   func() error { _, err := f.within(t); return err },
			"Check":    func() error { return f.Check(ctx) },
		} {
			err := call()
			if err == nil || known(err) {
				t.Errorf("%s: error is %v", name, err)
			}
			if name != "Check" && err != nil && !strings.HasPrefix(err.Error(), "sqlstore: ") {
				t.Errorf("%s: nobody knows whose error this is: %v", name, err)
			}
		}
	})
}

func known(err error) bool {
	for _, target := range []error{
		hookonce.ErrBusy, hookonce.ErrInvalidRef, hookonce.ErrNotFound, hookonce.ErrSchemaMissing,
		hookonce.ErrSchemaNewer, hookonce.ErrStale, hookonce.ErrTraceLost, hookonce.ErrUnknownOutcome,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func TestNewRefusesWhatCanNotWork(t *testing.T) {
	for name, open := range map[string]func(){
		"no dialect":    func() { sqlstore.New(new(sql.DB), 0) },
		"a bad schema":  func() { sqlstore.New(new(sql.DB), sqlstore.Postgres, sqlstore.WithSchema(`x"; DROP`)) },
		"a bad prefix":  func() { sqlstore.New(new(sql.DB), sqlstore.SQLite, sqlstore.WithSchema("x; DROP")) },
		"other dialect": func() { sqlstore.New(new(sql.DB), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("New accepted it")
				}
			}()
			open()
		})
	}
}
