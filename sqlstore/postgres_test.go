package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"runtime"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	"golang.org/x/sync/errgroup"
)

func queryRow[T any](t testing.TB, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) (v T) {
	t.Helper()
	must(t, q.QueryRowContext(t.Context(), query, args...).Scan(&v))
	return v
}

// A duplicate of finished work takes no row lock (which would show in xmax) and no transaction id,
// so it writes nothing.
func TestADuplicateWritesNothing(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		_, err := f.within(t)
		must(t, err)
		tx, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		c, err := f.ClaimTx(t.Context(), tx, request)
		must(t, err)
		if c.Verdict != hookonce.Duplicate {
			t.Fatalf("claim %#v", c)
		}
		if queryRow[bool](t, tx, `SELECT pg_current_xact_id_if_assigned() IS NOT NULL`) {
			t.Error("the transaction was given an id, so it wrote")
		}
		must(t, tx.Rollback())
		if xmax := queryRow[string](t, f.db, `SELECT xmax::text FROM `+f.tables+`claims`); xmax != "0" {
			t.Errorf("the row was locked by transaction %s", xmax)
		}
	})
}

// The bounded wait is for the claim. The handler's statements, and a caller's own transaction, keep
// the limit that the caller has set.
func TestTheBoundedWaitEndsWithTheClaim(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			if got := queryRow[string](t, tx, `SHOW lock_timeout`); got != "0" {
				t.Errorf("the handler runs with lock_timeout %s", got)
			}
			return nil
		})
		must(t, err)

		tx, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = tx.ExecContext(t.Context(), `SET LOCAL lock_timeout = '7s'`)
		must(t, err)
		other := request
		other.Key = "evt_2"
		_, err = f.ClaimTx(t.Context(), tx, other)
		must(t, err)
		if got := queryRow[string](t, tx, `SHOW lock_timeout`); got != "7s" {
			t.Errorf("after ClaimTx lock_timeout is %s, want the caller's 7s", got)
		}
		must(t, tx.Rollback())
	})
}

// terminate ends the server process behind tx.
func (f fixture) terminate(t testing.TB, tx *sql.Tx) {
	t.Helper()
	pid := queryRow[int](t, tx, `SELECT pg_backend_pid()`)
	if !queryRow[bool](t, f.open(), `SELECT pg_terminate_backend($1, 10000)`, pid) {
		t.Fatalf("backend %d did not end", pid)
	}
}

// A connection that dies under the handler rolls everything back, and the trace says so.
func TestALostConnectionIsAFailedAttempt(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
			must(t, err)
			f.terminate(t, tx)
			_, err = tx.ExecContext(t.Context(), `SELECT 1`)
			return err
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("error is %v, want the handler's", err)
		}
		f.left(t, hookonce.StateFailed, "")
		if n := queryRow[int](t, f.db, `SELECT count(*) FROM `+f.tables+`happened`); n != 0 {
			t.Fatalf("%d effects remain", n)
		}
	})
}

// A connection that dies before the store sends COMMIT is no unknown outcome: nothing was committed.
func TestAConnectionLostBeforeTheCommitIsAFailedAttempt(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			f.terminate(t, tx)
			return nil
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("error is %v, want a failure", err)
		}
		f.left(t, hookonce.StateFailed, "")
		c, err := f.within(t)
		must(t, err)
		if c.Verdict != hookonce.Acquired {
			t.Fatalf("the retry was answered %#v", c)
		}
		f.left(t, hookonce.StateDone, "")
	})
}

// There is no lease to wait out when the owner of a transaction dies: the copy that waits for it
// goes on at once. In a transaction of the caller's it waits as the caller has set, whatever the
// store's own bound.
func TestADeadOwnerFreesItsClaim(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		owner, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = f.ClaimTx(t.Context(), owner, request)
		must(t, err)
		pid := queryRow[int](t, owner, `SELECT pg_backend_pid()`)

		copies := f.open()
		hasty := sqlstore.New(copies, sqlstore.Postgres, sqlstore.WithSchema("case_1"), sqlstore.WithWait(time.Millisecond))
		var g errgroup.Group
		g.Go(func() error {
			tx, err := copies.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			c, err := hasty.ClaimTx(t.Context(), tx, request)
			if err == nil && c.Verdict != hookonce.Acquired {
				err = errors.New("the waiting copy was answered " + c.Verdict.String())
			}
			return err
		})
		until(t, f.db, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '20 ms'`)
		_, err = f.db.ExecContext(t.Context(), `SELECT pg_terminate_backend($1)`, pid)
		must(t, err)
		must(t, g.Wait())
		_ = owner.Rollback() // its connection is gone
	})
}

// A copy that waits has seen the claim as it was before. What it is told is how the claim stands when
// its turn comes.
func TestACopyThatWaitedReadsTheTruth(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		c, err := f.Claim(t.Context(), request)
		must(t, err)
		must(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}))

		owner, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = f.ClaimTx(t.Context(), owner, request)
		must(t, err)
		patient := sqlstore.New(f.open(), sqlstore.Postgres, sqlstore.WithSchema("case_1"), sqlstore.WithWait(time.Minute))
		var g errgroup.Group
		g.Go(func() error {
			c, err := patient.Claim(t.Context(), request)
			if err == nil && (c.Verdict != hookonce.Duplicate || c.Token != 2) {
				err = fmt.Errorf("the waiting copy was answered %#v", c)
			}
			return err
		})
		until(t, f.db, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted`)
		must(t, owner.Commit())
		must(t, g.Wait())
	})
}

// A claim that lost a round and won the next one leaves no limit behind either.
func TestTheBoundedWaitEndsWithAClaimThatLostARound(t *testing.T) {
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		// A trace that is being written: the claim does not see it, waits for it, and then looks again.
		trace, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = trace.ExecContext(t.Context(), `INSERT INTO `+f.tables+`claims (source, key, state, token, first_seen, updated_at)
			VALUES ('billing', 'evt_1', 'failed', 1, now(), now())`)
		must(t, err)
		patient := sqlstore.New(f.open(), sqlstore.Postgres, sqlstore.WithSchema("case_1"), sqlstore.WithWait(time.Minute))
		var g errgroup.Group
		g.Go(func() error {
			_, err := patient.Within(t.Context(), request, func(tx *sql.Tx, c hookonce.Claim) error {
				if c.Token != 2 {
					t.Errorf("token %d, so no round was lost", c.Token)
				}
				if got := queryRow[string](t, tx, `SHOW lock_timeout`); got != "0" {
					t.Errorf("the handler runs with lock_timeout %s", got)
				}
				return nil
			})
			return err
		})
		until(t, f.db, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted`)
		must(t, trace.Commit())
		must(t, g.Wait())
	})
}

// until asks the server until it says yes; what it is asked about has no signal to wait for.
func until(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !queryRow[bool](t, db, query); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", query)
		}
	}
}

// Under a stricter isolation level a lost race is a serialization failure. It never becomes an error
// of the claim.
func TestStricterIsolation(t *testing.T) {
	testskip.Long(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			every(t, postgresConnections(), func(t *testing.T, f fixture) {
				exec(t, f.db, `ALTER ROLE CURRENT_USER IN DATABASE `+queryRow[string](t, f.db, `SELECT current_database()`)+
					` SET default_transaction_isolation = '`+level+`'`)
				s := sqlstore.New(f.open(), sqlstore.Postgres, sqlstore.WithSchema("case_1"))
				for range 10 {
					race(t, s)
				}
			})
		})
	}
}

// race lets copies of an event claim in both modes at once, until one of them has done the work.
func race(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	req := request
	req.Key = time.Now().Format(time.RFC3339Nano)
	won := make(chan int64, 6)
	var g errgroup.Group
	for range cap(won) {
		g.Go(func() error {
			c, err := s.Within(t.Context(), req, func(*sql.Tx, hookonce.Claim) error { return nil })
			if err == nil && c.Verdict == hookonce.Acquired {
				won <- c.Token
			}
			return err
		})
	}
	must(t, g.Wait())
	if len(won) != 1 {
		t.Fatalf("%d copies won", len(won))
	}
}

// What a COMMIT is answered with tells whether anything was committed. Package pgstore has the same test.
func TestCommitIsAnswered(t *testing.T) {
	for name, c := range map[string]connection{"pgx": pgxStdlib, "pq": libpq} {
		t.Run(name, func(t *testing.T) {
			db := c.Open(t, pgtest.DSN(t), new(testdb.Faults))
			_, err := schema.Migrate(t.Context(), db, schema.Postgres, schema.DefaultName)
			must(t, err)
			exec(t, db, pgtest.AnswerCommit)
			store := sqlstore.New(db, sqlstore.Postgres)
			for code, unknown := range pgtest.CommitAnswers {
				req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: code}}
				_, err := store.Within(t.Context(), req, func(tx *sql.Tx, _ hookonce.Claim) error {
					_, err := tx.ExecContext(t.Context(), "INSERT INTO answers VALUES ($1)", code)
					return err
				})
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) != unknown {
					t.Errorf("%s: %v, want an unknown outcome: %v", code, err, unknown)
				}
			}
		})
	}
}
