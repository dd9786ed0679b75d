package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// happened checks how many effects there are.
func (f fixture) happened(t testing.TB, want int) {
	t.Helper()
	if got := queryRow[int](t, f.db, `SELECT count(*) FROM `+f.tables+`happened`); got != want {
		t.Errorf("%d effects, want %d", got, want)
	}
}

// happen has an effect, and hides that it cannot.
func (f fixture) happen(t testing.TB, tx *sql.Tx) {
	_, _ = tx.ExecContext(t.Context(), `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
}

// Whatever a handler does to the transaction, and hides, Within says what it was, and what it says is true:
// either nothing of the attempt is stored, or all of it with the claim. The next copy finds that.
func TestAHandlerThatEndsTheTransaction(t *testing.T) {
	testskip.Long(t)
	statements := func(all ...string) func(context.Context, *sql.Tx) {
		return func(ctx context.Context, tx *sql.Tx) {
			for _, s := range all {
				_, _ = tx.ExecContext(ctx, s)
			}
		}
	}
	const done, failed = hookonce.StateDone, hookonce.StateFailed
	all := []sqlstore.Dialect{sqlstore.SQLite, sqlstore.Postgres, sqlstore.MySQL}
	server := all[1:]
	for name, tt := range map[string]struct {
		on      []sqlstore.Dialect
		end     func(context.Context, *sql.Tx)
		state   hookonce.State // where the database has no veto
		says    string
		effects int // of one before the end and one after it, where the database has no veto
	}{
		"a deferred Rollback":      {all, func(_ context.Context, tx *sql.Tx) { _ = tx.Rollback() }, failed, "remove Rollback", 0},
		"Commit":                   {all, func(_ context.Context, tx *sql.Tx) { _ = tx.Commit() }, done, "leave the commit to the store", 1},
		"ROLLBACK":                 {all, statements("ROLLBACK"), failed, "rolled back before", 0},
		"COMMIT":                   {all, statements("COMMIT"), done, "leave the commit to the store", 2},
		"ROLLBACK; BEGIN":          {all, statements("ROLLBACK", "BEGIN"), failed, "rolled back before", 0},
		"COMMIT; BEGIN":            {all, statements("COMMIT", "BEGIN"), done, "leave the commit to the store", 2},
		"a forged mark":            {all, statements("ROLLBACK", "BEGIN", "SAVEPOINT hookonce"), failed, "rolled back before", 0},
		"ROLLBACK AND CHAIN":       {server, statements("ROLLBACK AND CHAIN"), failed, "rolled back before", 0},
		"COMMIT AND CHAIN":         {server, statements("COMMIT AND CHAIN"), done, "leave the commit to the store", 2},
		"a commit in passing":      {all[2:], statements("CREATE TABLE IF NOT EXISTS passing (id INTEGER)"), done, "leave the commit to the store", 2},
		"an error that was hidden": {all[1:2], statements("SELECT 1/0"), failed, "one of its statements had failed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for driver, c := range connections() {
				for _, d := range tt.on {
					if c.Dialect != d {
						continue
					}
					every(t, map[string]connection{driver: c}, func(t *testing.T, f fixture) {
						f.db.SetMaxOpenConns(1) // the copy meets the connection that was used
						state, says, effects := tt.state, tt.says, tt.effects
						switch {
						case d == sqlstore.SQLite && (state == done || name == "ROLLBACK"):
							state, says, effects = failed, "the store refused", 0
						case d == sqlstore.Postgres && name == "ROLLBACK":
							effects = 1 // what came after it was a transaction of its own, as the documentation says
						}
						c, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
							f.happen(t, tx)
							tt.end(t.Context(), tx)
							f.happen(t, tx)
							return nil
						})
						if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) || !strings.Contains(err.Error(), says) || c.Verdict != hookonce.Acquired {
							t.Fatalf("claim %v, error %v; want one that says %q", c.Verdict, err, says)
						}
						f.left(t, state, "")
						f.happened(t, effects)
						c, err = f.within(t, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
						must(t, err)
						if want := map[hookonce.State]hookonce.Verdict{done: hookonce.Duplicate, failed: hookonce.Acquired}[state]; c.Verdict != want {
							t.Errorf("the next copy was answered %v, want %v", c.Verdict, want)
						}
						if c.Verdict == hookonce.Acquired {
							effects++
						}
						f.happened(t, effects)
					})
				}
			}
		})
	}
}

// A handler that returns an error has failed, also when a statement had committed the claim in passing: what came
// after that is not done. The next copy runs the handler again, which repeats what was committed.
func TestAnErrorAfterACommitInPassingIsAFailedAttempt(t *testing.T) {
	testskip.Long(t)
	statement := func(text string) func(t *testing.T, f fixture, tx *sql.Tx) {
		return func(t *testing.T, f fixture, tx *sql.Tx) {
			_, _ = tx.ExecContext(t.Context(), strings.ReplaceAll(text, "{}", f.tables))
		}
	}
	for name, commit := range map[string]func(t *testing.T, f fixture, tx *sql.Tx){
		"COMMIT":       statement("COMMIT"),
		"BEGIN":        statement("BEGIN"),
		"CREATE TABLE": statement("CREATE TABLE IF NOT EXISTS passing (id INTEGER)"),
		"LOCK TABLES":  statement("LOCK TABLES {}happened WRITE"),
	} {
		t.Run(name, func(t *testing.T) {
			every(t, mysqlConnections(), func(t *testing.T, f fixture) {
				f.db.SetMaxOpenConns(1)
				for i, outcome := range []struct {
					failure error
					state   hookonce.State
				}{{errDeclined, hookonce.StateFailed}, {errDeclined, hookonce.StateFailed}, {hookonce.Permanent(errDeclined), hookonce.StateDead}} {
					claim, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
						f.happen(t, tx)
						commit(t, f, tx)
						f.happen(t, tx)
						return outcome.failure
					})
					if claim.Verdict != hookonce.Acquired || !errors.Is(err, errDeclined) || !errors.Is(err, claimsql.ErrTorn) || errors.Is(err, hookonce.ErrTraceLost) {
						t.Fatalf("copy %d: claim %v, error %v", i+1, claim.Verdict, err)
					}
					f.left(t, outcome.state, "card declined")
				}
				claim, err := f.within(t)
				must(t, err)
				if claim.Verdict != hookonce.Acquired || claim.Token != 4 {
					t.Errorf("the next copy was answered %#v", claim)
				}
				f.left(t, hookonce.StateDone, "")
			})
		})
	}
}

// So it is where the handler commits by itself: Postgres tells what became of the transaction, also when the time of the
// handler is up. The error says what the handler did.
func TestAnErrorAfterTheHandlersCommit(t *testing.T) {
	testskip.Long(t)
	statements := func(all ...string) func(context.Context, fixture, *sql.Tx) {
		return func(ctx context.Context, f fixture, tx *sql.Tx) {
			for _, s := range all {
				_, _ = tx.ExecContext(ctx, strings.ReplaceAll(s, "{}", f.tables))
			}
		}
	}
	type returns func(cancel func()) error
	fails := returns(func(func()) error { return errDeclined })
	const declined, effect = "card declined", `INSERT INTO {}happened VALUES ('evt_1')`
	for name, tt := range map[string]struct {
		end     func(context.Context, fixture, *sql.Tx)
		returns returns
		state   hookonce.State
		says    string
		effects int // that are stored
	}{
		"Commit":                        {func(_ context.Context, _ fixture, tx *sql.Tx) { _ = tx.Commit() }, fails, hookonce.StateFailed, declined, 1},
		"COMMIT":                        {statements("COMMIT"), fails, hookonce.StateFailed, declined, 1},
		"END":                           {statements("END"), fails, hookonce.StateFailed, declined, 1},
		"COMMIT, and more":              {statements("COMMIT", effect), fails, hookonce.StateFailed, declined, 2},
		"COMMIT AND CHAIN":              {statements("COMMIT AND CHAIN", effect), fails, hookonce.StateFailed, declined, 1},
		"a hidden error":                {statements("COMMIT AND CHAIN", effect, "SELECT 1/0"), func(func()) error { return nil }, hookonce.StateFailed, "one of its statements", 1},
		"a commit that fails":           {statements("COMMIT AND CHAIN", effect, `INSERT INTO {}happened VALUES ('deferred')`), func(func()) error { return nil }, hookonce.StateFailed, "leave the commit to the store", 1},
		"for good":                      {statements("COMMIT"), func(func()) error { return hookonce.Permanent(errDeclined) }, hookonce.StateDead, declined, 1},
		"to be forgotten":               {statements("COMMIT"), func(func()) error { return hookonce.Forget(errDeclined) }, hookonce.StateFailed, declined, 1},
		"after its time":                {statements("COMMIT AND CHAIN"), func(cancel func()) error { cancel(); return errDeclined }, hookonce.StateFailed, declined, 1},
		"a COMMIT whose answer is lost": {statements("COMMIT", "SELECT pg_terminate_backend(pg_backend_pid())"), fails, hookonce.StateFailed, declined, 1},
		"success after its time":        {statements("COMMIT AND CHAIN"), func(cancel func()) error { cancel(); return nil }, hookonce.StateFailed, context.Canceled.Error(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			every(t, postgresConnections(), func(t *testing.T, f fixture) {
				deferRefusal(t, f)
				for i := range 2 {
					ctx, cancel := context.WithCancel(t.Context())
					claim, err := f.Within(ctx, request, func(tx *sql.Tx, _ hookonce.Claim) error {
						f.happen(t, tx)
						tt.end(ctx, f, tx)
						return tt.returns(cancel)
					})
					cancel()
					if claim.Token != int64(i+1) || !errors.Is(err, claimsql.ErrTorn) || !strings.Contains(err.Error(), tt.says) || errors.Is(err, hookonce.ErrTraceLost) {
						t.Fatalf("copy %d: token %d, error %v", i+1, claim.Token, err)
					}
					f.left(t, tt.state, claimsql.ErrTorn.Error()[:80])
				}
				f.happened(t, 2*tt.effects)
				for _, want := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate} {
					claim, err := f.within(t)
					must(t, err)
					if claim.Verdict != want {
						t.Errorf("the next copy was answered %v, want %v", claim.Verdict, want)
					}
				}
			})
		})
	}
}

// Where the row does not tell any more that the claim is the attempt's, it stays done, and the error says that work may be lost.
func TestAChangeAfterTheHandlersCommitIsTold(t *testing.T) {
	testskip.Long(t)
	every(t, postgresConnections(), func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			f.happen(t, tx)
			must(t, tx.Commit())
			exec(t, f.db, `UPDATE `+f.tables+`claims SET last_error = 'looked at'`)
			return errDeclined
		})
		if !errors.Is(err, errDeclined) || !errors.Is(err, claimsql.ErrStays) || !errors.Is(err, hookonce.ErrTraceLost) || errors.Is(err, claimsql.ErrTorn) {
			t.Errorf("error is %v", err)
		}
		f.left(t, hookonce.StateDone, "looked at")
		f.happened(t, 1)
	})
}

// A deadlock rolls the transaction back, and then a copy may have won; or a statement had committed before it. Where these look alike
// nothing is acknowledged in silence.
func TestADeadlockAfterACommitInPassingIsNoDuplicate(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		claim, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			f.happen(t, tx)
			_, err := tx.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS passing (id INTEGER)")
			must(t, err)
			return &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"}
		})
		if claim.Verdict != hookonce.Acquired || !errors.Is(err, claimsql.ErrAlike) || !errors.Is(err, hookonce.ErrTraceLost) {
			t.Errorf("claim %v, error %v", claim.Verdict, err)
		}
		f.happened(t, 1)
	})
}

// An attempt of which nothing is to be left may be forgotten only if the server says that its
// handler committed nothing.
func TestAForgottenAttemptThatMayStand(t *testing.T) {
	testskip.Long(t)
	t.Parallel() // it waits for servers of its own
	for name, c := range postgresConnections() {
		t.Run(name, func(t *testing.T) {
			cluster := pgtest.Start(t, pgtest.Options{})
			db := c.Open(t, cluster.DSN(t), new(testdb.Faults))
			_, err := schema.Migrate(t.Context(), db, schema.Postgres, schema.DefaultName)
			must(t, err)
			for _, commits := range []bool{false, true} {
				_, err := sqlstore.New(db, sqlstore.Postgres).Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
					if commits {
						_, err := tx.ExecContext(t.Context(), "COMMIT")
						must(t, err)
						must(t, cluster.Kill())
					}
					return hookonce.Forget(errDeclined)
				})
				if !errors.Is(err, errDeclined) || errors.Is(err, hookonce.ErrTraceLost) != commits {
					t.Errorf("the handler committed: %v, error is %v", commits, err)
				}
			}
		})
	}
}

// deferRefusal has the database refuse to commit the effect 'deferred'.
func deferRefusal(t *testing.T, f fixture) {
	exec(t, f.db, `CREATE FUNCTION `+f.tables+`refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$`,
		`CREATE CONSTRAINT TRIGGER refusal AFTER INSERT ON `+f.tables+`happened DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.id = 'deferred') EXECUTE FUNCTION `+f.tables+`refuse()`)
}

// Work that is done under the key by the time of the trace is not the attempt's if the claim was purged and made
// anew, although it has the same token.
func TestAnErrorAfterACommitOpensNobodyElsesClaim(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		failure := late{sync.OnceFunc(func() {
			if got := queryRow[int](t, f.db, `SELECT count(*) FROM `+f.tables+`claims WHERE state = 'done'`); got != 1 {
				t.Errorf("%d claims were committed", got)
			}
			exec(t, f.db, `DELETE FROM `+f.tables+`claims`)
			c, err := f.within(t)
			must(t, err)
			if c.Token != 1 {
				t.Errorf("made anew under token %d", c.Token)
			}
		})}
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
			_, err := tx.ExecContext(t.Context(), "BEGIN")
			must(t, err)
			return hookonce.Permanent(failure)
		})
		if !errors.Is(err, hookonce.ErrTraceLost) {
			t.Errorf("error is %v, want ErrTraceLost", err)
		}
		f.left(t, hookonce.StateDone, "")
	})
}

// Locks of tables outlive the transaction. A connection on which a handler took some is closed, however the
// handler ends, and the copies that come next are handled.
func TestLockTablesEndsWithTheHandler(t *testing.T) {
	for name, tt := range map[string]struct {
		returns func(cancel func(), tx *sql.Tx) error
		next    hookonce.Verdict
	}{
		"nil":                 {func(func(), *sql.Tx) error { return nil }, hookonce.Duplicate},
		"an error":            {func(func(), *sql.Tx) error { return errDeclined }, hookonce.Acquired},
		"a panic":             {func(func(), *sql.Tx) error { panic(errDeclined) }, hookonce.Acquired},
		"Rollback":            {func(_ func(), tx *sql.Tx) error { _ = tx.Rollback(); return errDeclined }, hookonce.Duplicate},
		"after its time":      {func(cancel func(), _ *sql.Tx) error { cancel(); return errDeclined }, hookonce.Duplicate},
		"nil, after its time": {func(cancel func(), _ *sql.Tx) error { cancel(); return nil }, hookonce.Duplicate},
	} {
		t.Run(name, func(t *testing.T) {
			every(t, mysqlConnections(), func(t *testing.T, f fixture) {
				f.db.SetMaxOpenConns(2) // one to look at the claim with
				func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					_, err := f.Within(ctx, request, func(tx *sql.Tx, _ hookonce.Claim) error {
						_, err := tx.ExecContext(ctx, `LOCK TABLES `+f.tables+`happened WRITE`)
						must(t, err)
						f.happen(t, tx)
						return tt.returns(cancel, tx)
					})
					if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
						t.Errorf("error is %v, want a failure", err)
					}
				}()
				bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := f.open().ExecContext(bounded, `INSERT INTO `+f.tables+`happened VALUES ('other')`); err != nil {
					t.Fatalf("the table is locked for others: %v", err)
				}
				f.db.SetMaxOpenConns(1)
				for _, want := range []hookonce.Verdict{tt.next, hookonce.Duplicate} {
					c, err := f.within(t)
					must(t, err)
					if c.Verdict != want {
						t.Errorf("the next copy was answered %v, want %v", c.Verdict, want)
					}
				}
			})
		})
	}
}

// Events without a key have no claim to look up, and are not acknowledged either. MySQL cannot tell
// what became of them.
func TestAHandlerThatEndsTheTransactionOfAnUnkeyedEvent(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		unknown := strings.Contains(t.Name(), "mysql")
		for _, end := range []string{"ROLLBACK", "COMMIT"} {
			_, err := f.Within(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing"}}, func(tx *sql.Tx, _ hookonce.Claim) error {
				f.happen(t, tx)
				_, _ = tx.ExecContext(t.Context(), end)
				_, _ = tx.ExecContext(t.Context(), "BEGIN")
				return nil
			})
			if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) != unknown {
				t.Errorf("%s: %v; want an unknown outcome: %v", end, err, unknown)
			}
		}
	})
}

// An interrupted statement ends a transaction of SQLite, and what the handler does after it would be committed
// by itself: three deliveries would have three effects.
func TestAnInterruptedStatementThatIsHiddenLeavesNothing(t *testing.T) {
	every(t, sqliteConnections(), func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		for range 3 {
			_, err := f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
				f.happen(t, tx)
				// Until it is interrupted after it began. Where its context ends just before, mattn's driver interrupts
				// nothing, and it runs to its end.
				for limit := 10 * time.Millisecond; queryRow[int](t, tx, `SELECT count(*) FROM `+f.tables+`happened`) > 0; limit = min(2*limit, time.Second/4) {
					short, cancel := context.WithTimeout(t.Context(), limit)
					_, _ = tx.ExecContext(short, `INSERT INTO `+f.tables+`happened
						WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT i FROM n`)
					cancel()
				}
				f.happen(t, tx)
				return nil
			})
			if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Fatalf("error is %v, want a failure", err)
			}
			f.left(t, hookonce.StateFailed, "")
			f.happened(t, 0)
		}
		_, err := f.within(t, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
		must(t, err)
		f.happened(t, 1)
	})
}

// That a commit was refused is told of the handler that tried it, and of no later one on the
// connection.
func TestARefusedCommitIsToldOnce(t *testing.T) {
	every(t, sqliteConnections(), func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		if _, err := f.within(t, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`, "COMMIT"); !errors.Is(err, claimsql.ErrRefused) {
			t.Errorf("who committed is told %v", err)
		}
		_, err := f.Within(t.Context(), request, func(*sql.Tx, hookonce.Claim) error { return errDeclined })
		if !errors.Is(err, errDeclined) || errors.Is(err, claimsql.ErrRefused) {
			t.Errorf("the next one is told %v", err)
		}
	})
}

// What is set on a connection for a handler is gone when it is used again, whatever became of the attempt, and
// wherever it is interrupted.
func TestConnectionsAreGivenBackAsTheyWere(t *testing.T) {
	own := connections()
	for name, c := range own {
		if c.Dialect == sqlstore.Postgres {
			delete(own, name) // nothing is set there
		}
	}
	every(t, own, func(t *testing.T, f fixture) {
		f.db.SetMaxOpenConns(1)
		for i, do := range []func(ctx context.Context, cancel func(), tx *sql.Tx) error{
			func(context.Context, func(), *sql.Tx) error { return nil },
			func(context.Context, func(), *sql.Tx) error { return errDeclined },
			func(context.Context, func(), *sql.Tx) error { panic(errDeclined) },
			func(_ context.Context, cancel func(), _ *sql.Tx) error { cancel(); return nil },
			func(_ context.Context, _ func(), tx *sql.Tx) error { return tx.Rollback() },
		} {
			func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req := request
				req.Key = fmt.Sprint("evt_", i)
				_, _ = f.Within(ctx, req, func(tx *sql.Tx, _ hookonce.Claim) error {
					f.happen(t, tx)
					return do(ctx, cancel, tx)
				})
			}()
			own := fmt.Sprintf("'own_%d'", i)
			exec(t, f.db, `INSERT INTO `+f.tables+`happened VALUES (`+own+`)`)
			f.db.SetMaxIdleConns(-1) // closes the connection: what was not committed is gone
			f.db.SetMaxIdleConns(1)
			if n := queryRow[int](t, f.db, `SELECT count(*) FROM `+f.tables+`happened WHERE id = `+own); n != 1 {
				t.Errorf("case %d: what the next one wrote is gone", i)
			}
		}
	})
}

// hookless makes the connections of a driver that knows no commit hook.
type hookless struct{ driver.Connector }

// Connect implements [driver.Connector].
func (h hookless) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := h.Connector.Connect(ctx)
	return bare{&testdb.Conn{Conn: inner, Faults: new(testdb.Faults)}}, err
}

// bare hides the driver's own methods.
type bare struct{ *testdb.Conn }

// Raw is not the method that leads to them.
func (bare) Raw(int) {}

// Without a commit hook what a handler does after the end of its transaction is stored, statement by statement.
// It is noticed all the same, and the copy that comes next is told the truth.
func TestAnEndIsNoticedWithoutACommitHook(t *testing.T) {
	for end, want := range map[string]hookonce.Verdict{"ROLLBACK": hookonce.Acquired, "COMMIT": hookonce.Duplicate} {
		p := modernc.places(t)(t)
		inner, err := modernc.Connector(p.DSN)
		must(t, err)
		db := sql.OpenDB(hookless{inner})
		defer db.Close()
		f := fixture{sqlstore.New(db, sqlstore.SQLite), db, nil, modernc.Create(t, db, p)}
		_, err = f.within(t, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`, end, `INSERT INTO `+f.tables+`happened VALUES ('evt_1')`)
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("%s: error is %v, want a failure", end, err)
		}
		if c, err := f.within(t); c.Verdict != want {
			t.Errorf("after %s the next copy was answered %v, %v; want %v", end, c.Verdict, err, want)
		}
	}
}
