package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/sqlstore"
	"golang.org/x/sync/errgroup"
)

// Handlers that read from the pool in which they hold their transactions wait for each other. The error says so.
func TestHandlersThatWaitForTheirOwnPoolAreTold(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		size := 2
		if strings.HasSuffix(t.Name(), "/modernc") || strings.HasSuffix(t.Name(), "/mattn") {
			size = 1 // one writer at a time
		}
		f.db.SetMaxOpenConns(size)
		throwaway.InTime(t, func(ctx context.Context) (bool, error) {
			all := throwaway.NewBarrier(size)
			var handlers errgroup.Group
			for i := range size {
				handlers.Go(func() error {
					req := request
					req.Key = fmt.Sprint("evt_", i)
					_, err := f.Within(ctx, req, func(*sql.Tx, hookonce.Claim) error {
						all.Wait(ctx)
						return f.db.PingContext(ctx)
					})
					if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connections of the pool were held by handlers") {
						return fmt.Errorf("%s: %w", req.Key, err)
					}
					return nil
				})
			}
			err := handlers.Wait()
			return all.Passed(), err
		})
	})
}

// unset makes connections to MySQL on which nothing can be set.
type unset struct{ testdb.Connector }

// Connect implements [driver.Connector].
func (u unset) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := u.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return stubborn{inner.(*testdb.Conn)}, nil
}

type stubborn struct{ *testdb.Conn }

// ExecContext implements [driver.ExecerContext].
func (s stubborn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "SET ") {
		return nil, errDeclined
	}
	return s.Conn.ExecContext(ctx, query, args)
}

// A connection on which the bounded wait cannot be set is given back, or a pool that has a bound
// runs dry.
func TestConnectionsThatCannotBeSetAreGivenBack(t *testing.T) {
	p := goMySQL.places(t)(t)
	goMySQL.Create(t, goMySQL.Open(t, p.DSN, new(testdb.Faults)), p)
	inner, err := goMySQL.Connector(p.DSN)
	must(t, err)
	db := sql.OpenDB(unset{testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}})
	t.Cleanup(func() { must(t, db.Close()) })
	s := sqlstore.New(db, sqlstore.MySQL, sqlstore.WithSchema(p.Schema))
	_, within := s.Within(t.Context(), request, func(*sql.Tx, hookonce.Claim) error { return nil })
	_, claim := s.Claim(t.Context(), request)
	if n := db.Stats().InUse; !errors.Is(within, errDeclined) || !errors.Is(claim, errDeclined) || n != 0 {
		t.Errorf("Within: %v, Claim: %v; %d connections are in use", within, claim, n)
	}
}

// A handler that runs out of time in a pool of one connection waited for itself only if somebody waited for the pool.
func TestSlowHandlersInAPoolOfOneAreNotBlamed(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		for key, c := range map[string]struct {
			work   func(context.Context) error
			blamed bool
		}{
			"slow":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false},
			"second": {f.db.PingContext, true},
		} {
			req := request
			req.Key = key
			throwaway.InTime(t, func(ctx context.Context) (bool, error) {
				begun := false
				_, err := f.Within(ctx, req, func(*sql.Tx, hookonce.Claim) error {
					before := f.db.Stats().WaitCount
					err := c.work(ctx)
					begun = !c.blamed || f.db.Stats().WaitCount > before
					return err
				})
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "held by handlers") != c.blamed {
					return begun, fmt.Errorf("%s: %w", key, err)
				}
				return begun, nil
			})
		}
	})
}

// PgBouncer in statement mode has no transactions. Check says so.
func TestPgBouncerInStatementModeIsRefused(t *testing.T) {
	for name, c := range postgresConnections() {
		t.Run(name, func(t *testing.T) {
			dsn := c.places(t)(t).DSN
			for mode, works := range map[string]bool{"session": true, "transaction": true, "statement": false} {
				through := pgtest.PgBouncer(t, dsn, "pool_mode = "+mode, "ignore_startup_parameters = statement_timeout, extra_float_digits")
				if name == "pgx" {
					through += "&default_query_exec_mode=exec"
				}
				err := sqlstore.New(c.Open(t, through, new(testdb.Faults)), sqlstore.Postgres).Check(t.Context())
				if want := map[bool]string{true: "hookonce migrate", false: "set its pool_mode"}[works]; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s mode: %v", mode, err)
				}
			}
		})
	}
}
