package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
	"golang.org/x/sync/errgroup"
)

// Users connect in other ways than the package advises, and at other isolation levels. The guarantees hold
// all the same.
func TestMySQLSettings(t *testing.T) {
	testskip.Long(t)
	storetest.Briefly(t)
	for name, parameters := range map[string]string{
		"read committed":               "?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27",
		"prepared, found rows, latin1": "?clientFoundRows=true&charset=latin1",
	} {
		t.Run(name, func(t *testing.T) { conformance(t, overMySQL(parameters)) })
	}
	for name, parameters := range map[string]string{
		"serializable":     "?interpolateParams=true&tx_isolation=%27SERIALIZABLE%27",
		"strict snapshots": "?interpolateParams=true&innodb_snapshot_isolation=ON",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := overMySQL(parameters).config(t)
			storetest.RunConcurrent(t, cfg.Lease())
			storetest.RunTx(t, cfg)
			storetest.RunTxConcurrent(t, cfg)
			storetest.RunGuards(t, cfg)
			storetest.RunOutbox(t, cfg)
		})
	}
}

// patient makes connections whose statements wait for locks for more than 10 minutes.
func patient() map[string]connection {
	return map[string]connection{"mysql": overMySQL("?interpolateParams=true&innodb_lock_wait_timeout=700")}
}

func lockWait(t testing.TB, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) int {
	t.Helper()
	return queryRow[int](t, q, `SELECT @@SESSION.innodb_lock_wait_timeout`)
}

// The bounded wait is for the claim. The handler's statements, and whoever gets the connection next, keep
// the limit that the program has set, however the claim ended.
func TestTheBoundedWaitOfMySQLEndsWithTheClaim(t *testing.T) {
	every(t, patient(), func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		mustWait := func(after string) {
			t.Helper()
			if got := lockWait(t, f.db); got != 700 {
				t.Errorf("after %s connections wait for %d s, want 700", after, got)
			}
		}
		run := func(key string, failure error) (hookonce.Claim, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req := request
			req.Key = key
			return f.Within(ctx, req, func(tx *sql.Tx, _ hookonce.Claim) error {
				if got := lockWait(t, tx); got != 700 {
					t.Errorf("the handler's statements wait for %d s, want 700", got)
				}
				return failure
			})
		}
		_, err := run("evt_1", nil)
		must(t, err)
		mustWait("a success")
		if _, err := run("evt_2", errDeclined); !errors.Is(err, errDeclined) {
			t.Fatal(err)
		}
		mustWait("a failure")
		leased := request
		leased.Key = "evt_3"
		_, err = f.Claim(t.Context(), leased)
		must(t, err)
		mustWait("a claim with a lease")

		holder := f.hold(t, "evt_4")
		if c, err := run("evt_4", nil); !errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Busy {
			t.Fatalf("%#v, %v", c, err)
		}
		mustWait("a wait in vain")
		must(t, holder.Rollback())
	})
}

// hold claims a key in a transaction on a connection of its own.
func (f fixture) hold(t testing.TB, key string) *sql.Tx {
	t.Helper()
	tx, err := f.open().BeginTx(t.Context(), nil)
	must(t, err)
	req := request
	req.Key = key
	c, err := f.ClaimTx(t.Context(), tx, req)
	must(t, err)
	if c.Verdict != hookonce.Acquired {
		t.Fatalf("the holder was answered %#v", c)
	}
	return tx
}

// A caller who gives up while the claim waits leaves no connection behind that has the short limit.
func TestAnEndedContextLeavesNoLimit(t *testing.T) {
	every(t, patient(), func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		holder := f.hold(t, request.Key)
		ctx, cancel := context.WithCancel(t.Context())
		s := sqlstore.New(f.db, sqlstore.MySQL, sqlstore.WithSchema("case_1"), sqlstore.WithWait(time.Minute))
		var g errgroup.Group
		g.Go(func() error {
			_, err := s.Within(ctx, request, func(*sql.Tx, hookonce.Claim) error { return nil })
			return err
		})
		untilOneWaits(t, f.open())
		cancel()
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v", err)
		}
		if got := lockWait(t, f.db); got != 700 {
			t.Errorf("connections wait for %d s, want 700", got)
		}
		must(t, holder.Rollback())
	})
}

// untilOneWaits returns when a statement in this database waits for a lock. It asks seldom, because the
// server renews what it tells only if nobody has asked for a tenth of a second. Who is connected is not of
// that age, and what it remembers of other tests is passed over by that.
func untilOneWaits(t testing.TB, db *sql.DB) {
	t.Helper()
	const waiting = `SELECT count(*) > 0 FROM information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id
		WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()`
	for deadline := time.Now().Add(time.Minute); !queryRow[bool](t, db, waiting); time.Sleep(110 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for a lock")
		}
	}
}

// The snapshot that the handler reads from is as new as its claim, however long that had to wait.
func TestTheHandlersSnapshotIsNew(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		exec(t, f.db, `CREATE TABLE `+f.tables+`balance (amount INTEGER NOT NULL)`, `INSERT INTO `+f.tables+`balance VALUES (1)`)
		holder := f.hold(t, request.Key)
		s := sqlstore.New(f.open(), sqlstore.MySQL, sqlstore.WithSchema("case_1"), sqlstore.WithWait(time.Minute))
		var g errgroup.Group
		g.Go(func() error {
			c, err := s.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
				if got := queryRow[int](t, tx, `SELECT amount FROM `+f.tables+`balance`); got != 2 {
					t.Errorf("the handler reads %d, which was out of date when it began", got)
				}
				return nil
			})
			if err == nil && c.Verdict != hookonce.Acquired {
				err = fmt.Errorf("the copy was answered %#v", c)
			}
			return err
		})
		untilOneWaits(t, f.db)
		exec(t, f.db, `UPDATE `+f.tables+`balance SET amount = 2`)
		must(t, holder.Rollback())
		must(t, g.Wait())
	})
}

// A caller whose snapshot is older than what others did is told how things are, and not how they were.
func TestAnOldSnapshotDecidesNothing(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		old, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		queryRow[int](t, old, `SELECT count(*) FROM `+f.tables+`claims`)
		_, err = f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			if _, err := f.Newer(t.Context(), tx, "order-1", hookonce.Version(5)); err != nil {
				return err
			}
			_, _, err := f.Transition(t.Context(), tx, "order-1", "", "paid")
			return err
		})
		must(t, err)

		c, err := f.ClaimTx(t.Context(), old, request)
		must(t, err)
		if c.Verdict != hookonce.Duplicate {
			t.Errorf("claim %#v", c)
		}
		newer, err := f.Newer(t.Context(), old, "order-1", hookonce.Version(5))
		must(t, err)
		if newer {
			t.Error("a version was applied twice")
		}
		state, move, err := f.Transition(t.Context(), old, "order-1", "", "paid")
		must(t, err)
		if state != "paid" || move != hookonce.AlreadyThere {
			t.Errorf("%s, in state %q", move, state)
		}
		must(t, old.Rollback())
	})
}

// Copies of finished work are answered from a plain read, which waits for nobody.
func TestADuplicateWaitsForNoLock(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		_, err := f.within(t)
		must(t, err)
		locker, err := f.open().BeginTx(t.Context(), nil)
		must(t, err)
		queryRow[string](t, locker, `SELECT state FROM `+f.tables+`claims FOR UPDATE`)
		c, err := f.within(t)
		must(t, err)
		if c.Verdict != hookonce.Duplicate {
			t.Errorf("Within was answered %#v", c)
		}
		if c, err = f.Claim(t.Context(), request); err != nil || c.Verdict != hookonce.Duplicate {
			t.Errorf("Claim was answered %#v, %v", c, err)
		}
		must(t, locker.Rollback())
	})
}

// deadlocked is Within with a handler that meets a deadlock, and goes on with its error.
func (f fixture) deadlocked(t testing.TB, goOn func(tx *sql.Tx, deadlock error) error) error {
	t.Helper()
	exec(t, f.db, `CREATE TABLE `+f.tables+`accounts (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)`,
		`INSERT INTO `+f.tables+`accounts VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0)`)
	add := func(where string) string {
		return `UPDATE ` + f.tables + `accounts SET amount = amount + 1 WHERE id ` + where
	}
	other, err := f.open().BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), add(">= 2")) // much to undo, so that the handler's is the victim
	must(t, err)
	var g errgroup.Group
	_, failed := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
		_, err := tx.ExecContext(t.Context(), add("= 1"))
		must(t, err)
		g.Go(func() error {
			_, err := other.ExecContext(t.Context(), add("= 1"))
			return err
		})
		untilOneWaits(t, f.open())
		_, err = tx.ExecContext(t.Context(), add("= 2"))
		if err == nil {
			t.Error("there was no deadlock")
		}
		return goOn(tx, err)
	})
	must(t, g.Wait())
	must(t, other.Rollback())
	return failed
}

// A deadlock ends the whole transaction. A handler that goes on as if nothing were is not a success.
func TestAHiddenDeadlockIsNotASuccess(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		err := f.deadlocked(t, func(tx *sql.Tx, _ error) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
			return err
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("error is %v, want a failure", err)
		}
		f.left(t, hookonce.StateFailed, "deadlock")
		f.happened(t, 0)
	})
}

// Nor is it a statement that committed in passing, however the handler tells of it: the work of a copy that won at once,
// and looks like the attempt's, stays done.
func TestADeadlockOpensNoCopysClaim(t *testing.T) {
	for name, told := range map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"joined":   func(err error) error { return errors.Join(errDeclined, err) },
		"wrapped":  func(err error) error { return fmt.Errorf("%w: %w", errDeclined, err) },
	} {
		t.Run(name, func(t *testing.T) {
			every(t, mysqlConnections(), func(t *testing.T, f fixture) {
				now := time.Now()
				f.Store = sqlstore.New(f.db, sqlstore.MySQL, sqlstore.WithSchema("case_1"), sqlstore.WithClock(func() time.Time { return now }))
				err := f.deadlocked(t, func(_ *sql.Tx, err error) error {
					c, won := f.within(t, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
					must(t, won)
					if c.Verdict != hookonce.Acquired {
						t.Errorf("the copy was answered %v", c.Verdict)
					}
					return told(err)
				})
				if !errors.Is(err, claimsql.ErrAlike) || errors.Is(err, claimsql.ErrTorn) {
					t.Errorf("error is %v", err)
				}
				f.left(t, hookonce.StateDone, "")
				f.happened(t, 1)
			})
		})
	}
}

// kill ends the server's side of the connection with that number.
func (f fixture) kill(t testing.TB, id int) {
	t.Helper()
	exec(t, f.open(), fmt.Sprintf("KILL CONNECTION %d", id))
}

// A connection that dies under the handler rolls everything back, and the trace says so; also when the
// handler has done its part and does not notice.
func TestALostConnectionToMySQLIsAFailedAttempt(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
			must(t, err)
			f.kill(t, queryRow[int](t, tx, `SELECT CONNECTION_ID()`))
			return nil
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("error is %v, want a failure", err)
		}
		f.left(t, hookonce.StateFailed, "")
		if n := queryRow[int](t, f.db, `SELECT count(*) FROM `+f.tables+`happened`); n != 0 {
			t.Fatalf("%d effects remain", n)
		}
	})
}

// There is no lease to wait out when the owner of a transaction dies: the copy that waits for it goes on at
// once.
func TestADeadOwnerFreesItsClaimOnMySQL(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		owner := f.hold(t, request.Key)
		id := queryRow[int](t, owner, `SELECT CONNECTION_ID()`)
		copies := f.open()
		var g errgroup.Group
		g.Go(func() error {
			tx, err := copies.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			c, err := f.ClaimTx(t.Context(), tx, request)
			if err == nil && c.Verdict != hookonce.Acquired {
				err = errors.New("the waiting copy was answered " + c.Verdict.String())
			}
			return err
		})
		untilOneWaits(t, f.db)
		f.kill(t, id)
		must(t, g.Wait())
		_ = owner.Rollback() // its connection is gone
	})
}

// What is written to a table without transactions stays, which nothing can mend: the page says so, and how such tables
// are found.
func TestMySQLTablesWithoutTransactions(t *testing.T) {
	page, err := os.ReadFile("../docs/storage.md")
	must(t, err)
	_, query, ok := strings.Cut(string(page), "```sql\nSELECT table_name, t.engine")
	query, _, _ = strings.Cut(query, "```")
	if !ok {
		t.Fatal("docs/storage.md has no query for tables without transactions")
	}
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		exec(t, f.db, `CREATE TABLE `+f.tables+`sound (id INT) ENGINE=InnoDB`)
		for _, engine := range []string{"MyISAM", "Aria", "MEMORY"} {
			exec(t, f.db, `CREATE TABLE `+f.tables+engine+` (id INT) ENGINE=`+engine)
			_, err := f.within(t, `INSERT INTO `+f.tables+engine+` VALUES (1)`, `no statement`)
			var left int
			if qErr := f.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+f.tables+engine).Scan(&left); err == nil || qErr != nil || left != 1 {
				t.Errorf("%s: after a handler that failed (%v) there are %d rows, %v", engine, err, left, qErr)
			}
			var table, its string
			must(t, f.db.QueryRowContext(t.Context(), "SELECT table_name, t.engine"+query).Scan(&table, &its))
			if table != f.tables+engine || its != engine {
				t.Errorf("the page's query finds %s of %s", table, its)
			}
			exec(t, f.db, `DROP TABLE `+f.tables+engine)
		}
	})
}
