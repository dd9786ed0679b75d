package sqlstore_test

import (
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

func TestMigrateAndCheck(t *testing.T) {
	for name, c := range connections() {
		t.Run(name, func(t *testing.T) {
			p := c.places(t)(t)
			db := c.Open(t, p.DSN, new(testdb.Faults))
			s := sqlstore.New(db, c.Dialect, sqlstore.WithSchema("shop"))
			if err := s.Check(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) {
				t.Fatalf("Check: %v, want ErrSchemaMissing", err)
			}
			for range 2 {
				_, err := schema.Migrate(t.Context(), db, c.Dialect, "shop")
				must(t, err)
			}
			must(t, s.Check(t.Context()))
			_, err := s.Claim(t.Context(), request)
			must(t, err)

			other := sqlstore.New(db, c.Dialect)
			_, err = schema.Migrate(t.Context(), db, c.Dialect, schema.DefaultName)
			must(t, err)
			if _, err := other.Lookup(t.Context(), request.Ref); !errors.Is(err, hookonce.ErrNotFound) {
				t.Errorf("the schemas share their claims: %v", err)
			}
		})
	}
}

// A program that was deployed before its tables hears what to do, whatever it does first, and over one
// connection as well.
func TestMissingTablesAreNamed(t *testing.T) {
	for name, c := range connections() {
		t.Run(name, func(t *testing.T) {
			db := c.Open(t, c.places(t)(t).DSN, new(testdb.Faults))
			db.SetMaxOpenConns(1)
			s := sqlstore.New(db, c.Dialect)
			for name, call := range calls(t, fixture{Store: s, db: db}) {
				err := call()
				if !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "hookonce migrate") {
					t.Errorf("%s = %v, want ErrSchemaMissing and what to do", name, err)
				}
			}
		})
	}
}

// Nor is a program that is newer than its tables left with the database's words.
func TestOlderTablesAreNamed(t *testing.T) {
	servers := mysqlConnections()
	maps.Copy(servers, postgresConnections())
	every(t, servers, func(t *testing.T, f fixture) {
		exec(t, f.db, `ALTER TABLE `+f.tables+`claims DROP COLUMN pinned`)
		if _, err := f.Lookup(t.Context(), request.Ref); !errors.Is(err, hookonce.ErrSchemaMissing) {
			t.Errorf("Lookup = %v, want ErrSchemaMissing", err)
		}
	})
}

// A table of the handler's own that is missing is no fault of the store's schema.
func TestAMissingTableOfTheHandler(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		if _, err := f.within(t, `DELETE FROM invoices`); err == nil || errors.Is(err, hookonce.ErrSchemaMissing) {
			t.Errorf("error is %v", err)
		}
	})
}

// calls are all that a store does with its tables.
func calls(t *testing.T, f fixture) map[string]func() error {
	ctx, claim := t.Context(), hookonce.Claim{Ref: request.Ref, Token: 1}
	return map[string]func() error{
		"Claim":    func() error { _, err := f.Claim(ctx, request); return err },
		"Complete": func() error { return f.Complete(ctx, claim) },
		"Fail":     func() error { return f.Fail(ctx, claim, hookonce.Failure{Err: errDeclined}) },
		"Extend":   func() error { _, err := f.Extend(ctx, claim, request.Lease); return err },
		"Lookup":   func() error { _, err := f.Lookup(ctx, request.Ref); return err },
		"Purge": func() error {
			_, err := f.Purge(ctx, hookonce.PurgeRequest{Before: claim.UpdatedAt, Limit: 1})
			return err
		},
		"Within": func() error { _, err := f.within(t); return err },
		"Check":  func() error { return f.Check(ctx) },
		"ClaimTx": func() error {
			tx, err := f.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, err = f.ClaimTx(ctx, tx, request)
			must(t, tx.Rollback())
			return err
		},
	}
}

// A database that is not there is an error that none of the package's own explains.
func TestADatabaseThatIsDown(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		must(t, f.db.Close())
		for name, call := range calls(t, f) {
			err := call()
			if err == nil || known(err) {
				t.Errorf("%s: error is %v", name, err)
			}
			if name != "Check" && name != "ClaimTx" && err != nil && !strings.HasPrefix(err.Error(), "sqlstore: ") {
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
		"no dialect":    func() { sqlstore.New(new(sql.DB), "") },
		"a bad schema":  func() { sqlstore.New(new(sql.DB), sqlstore.Postgres, sqlstore.WithSchema(`x"; DROP`)) },
		"a bad prefix":  func() { sqlstore.New(new(sql.DB), sqlstore.SQLite, sqlstore.WithSchema("x; DROP")) },
		"other dialect": func() { sqlstore.New(new(sql.DB), "oracle") },
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
