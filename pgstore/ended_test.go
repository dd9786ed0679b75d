package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// modes opens a pool in each way in which users connect.
func modes(t *testing.T, test func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool)) {
	dsn := pgtest.DSN(t)
	for name, connect := range map[string]func() *pgxpool.Pool{
		"cache_statement": func() *pgxpool.Pool { return open(t, dsn, "") },
		"simple_protocol": func() *pgxpool.Pool { return open(t, dsn, "default_query_exec_mode=simple_protocol") },
		"PgBouncer":       func() *pgxpool.Pool { return open(t, pgtest.PgBouncer(t, dsn), "default_query_exec_mode=exec") },
	} {
		t.Run(name, func(t *testing.T) {
			pool := connect()
			store := pgstore.New(pool)
			pgtest.Migrate(t, open(t, dsn, ""), "")
			mustExec(t, pool, `CREATE TABLE IF NOT EXISTS effects (id text NOT NULL)`)
			mustExec(t, pool, `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$`)
			mustExec(t, pool, `DROP TRIGGER IF EXISTS refusal ON effects`)
			mustExec(t, pool, `CREATE CONSTRAINT TRIGGER refusal AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW WHEN (NEW.id = 'deferred') EXECUTE FUNCTION refuse()`)
			mustExec(t, pool, `TRUNCATE effects, hookonce.claims`)
			test(t, store, pool)
		})
	}
}

// Whatever statements a handler ends its transaction with, and whatever it hides, Within says what it was, and what
// it says is true: either nothing of the attempt is stored, or all of it with the claim.
func TestHandlerEndsTheTransaction(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, tt := range map[string]struct {
			statements []string
			state      hookonce.State
			says       string
			effects    int // of one before and one after
		}{
			"ROLLBACK":           {[]string{"ROLLBACK"}, hookonce.StateFailed, "rolled back before", 0},
			"ROLLBACK AND CHAIN": {[]string{"ROLLBACK AND CHAIN"}, hookonce.StateFailed, "rolled back before", 0},
			"ROLLBACK; BEGIN":    {[]string{"ROLLBACK; BEGIN"}, hookonce.StateFailed, "rolled back before", 0},
			"COMMIT":             {[]string{"COMMIT"}, hookonce.StateDone, "leave the commit to the store", 2},
			"COMMIT AND CHAIN":   {[]string{"COMMIT AND CHAIN"}, hookonce.StateDone, "leave the commit to the store", 2},
			"COMMIT; BEGIN":      {[]string{"COMMIT; BEGIN"}, hookonce.StateDone, "leave the commit to the store", 2},
			"hidden":             {[]string{"SELECT 1/0"}, hookonce.StateFailed, "one of its statements had failed", 0},
		} {
			t.Run(name, func(t *testing.T) {
				c, err := store.Within(t.Context(), request(name), func(tx pgx.Tx, _ hookonce.Claim) error {
					_ = effect(t.Context(), tx, name)
					for _, s := range tt.statements {
						_, _ = tx.Exec(t.Context(), s, pgx.QueryExecModeSimpleProtocol)
					}
					_ = effect(t.Context(), tx, name)
					return nil
				})
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) || !strings.Contains(err.Error(), tt.says) || c.Verdict != hookonce.Acquired {
					t.Fatalf("claim %v, error %v; want one that says %q", c.Verdict, err, tt.says)
				}
				happened(t, pool, name, tt.effects)
				c, err = store.Within(t.Context(), request(name), func(tx pgx.Tx, _ hookonce.Claim) error { return effect(t.Context(), tx, name) })
				if want := map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[tt.state == hookonce.StateDone]; err != nil || c.Verdict != want {
					t.Errorf("the next copy was answered %v, %v; want %v", c.Verdict, err, want)
				}
				happened(t, pool, name, max(tt.effects, 1))
			})
		}
	})
}

// errDeclined is why a handler fails.
var errDeclined = errors.New("declined")

// A handler that fails after it has committed by itself is run again, however it fails: what came after that commit may be lost,
// which is worse than to repeat the rest. The error says what it did.
func TestFailureAfterTheHandlersCommit(t *testing.T) {
	type returns func(ctx context.Context, cancel func(), tx pgx.Tx) error
	fails := returns(func(context.Context, func(), pgx.Tx) error { return errDeclined })
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, tt := range map[string]struct {
			statements []string
			returns    returns
			state      hookonce.State
			says       string
			effects    int // that are stored, of one before the statements and those of them
		}{
			"COMMIT":           {[]string{"COMMIT"}, fails, hookonce.StateFailed, "declined", 1},
			"END":              {[]string{"END"}, fails, hookonce.StateFailed, "declined", 1},
			"COMMIT; BEGIN":    {[]string{"COMMIT", "BEGIN", "effect"}, fails, hookonce.StateFailed, "declined", 1},
			"COMMIT, and more": {[]string{"COMMIT", "effect"}, fails, hookonce.StateFailed, "declined", 2},
			"COMMIT AND CHAIN": {[]string{"COMMIT AND CHAIN", "effect"}, fails, hookonce.StateFailed, "declined", 1},
			"a hidden error": {[]string{"COMMIT AND CHAIN", "effect", "SELECT 1/0"}, func(context.Context, func(), pgx.Tx) error { return nil },
				hookonce.StateFailed, "one of its statements", 1},
			"a commit that fails": {[]string{"COMMIT AND CHAIN", "effect", "INSERT INTO effects VALUES ('deferred')"},
				func(context.Context, func(), pgx.Tx) error { return nil }, hookonce.StateFailed, "commit: ", 1},
			"for good": {[]string{"COMMIT"}, func(context.Context, func(), pgx.Tx) error { return hookonce.Permanent(errDeclined) },
				hookonce.StateDead, "declined", 1},
			"to be forgotten": {[]string{"COMMIT"}, func(context.Context, func(), pgx.Tx) error { return hookonce.Forget(errDeclined) },
				hookonce.StateFailed, "declined", 1},
			"after its time": {[]string{"COMMIT AND CHAIN"}, func(_ context.Context, cancel func(), _ pgx.Tx) error { cancel(); return errDeclined },
				hookonce.StateFailed, "declined", 1},
			"success after its time": {[]string{"COMMIT AND CHAIN"}, func(_ context.Context, cancel func(), _ pgx.Tx) error { cancel(); return nil },
				hookonce.StateFailed, context.Canceled.Error(), 1},
			"a COMMIT whose answer is lost": {[]string{"COMMIT"}, func(ctx context.Context, _ func(), tx pgx.Tx) error {
				return errors.Join(errors.New("COMMIT: unexpected EOF"), tx.Conn().Close(ctx))
			}, hookonce.StateFailed, "unexpected EOF", 1},
			"without a connection": {[]string{"COMMIT"}, func(ctx context.Context, _ func(), tx pgx.Tx) error { return tx.Conn().Close(ctx) },
				hookonce.StateFailed, "connection was lost", 1},
		} {
			t.Run(name, func(t *testing.T) {
				for i := range 2 {
					ctx, cancel := context.WithCancel(t.Context())
					c, err := store.Within(ctx, request(name), func(tx pgx.Tx, _ hookonce.Claim) error {
						_ = effect(ctx, tx, name)
						for _, s := range tt.statements {
							if s == "effect" {
								_ = effect(ctx, tx, name)
							} else {
								_, _ = tx.Exec(ctx, s)
							}
						}
						return tt.returns(ctx, cancel, tx)
					})
					cancel()
					if c.Token != int64(i+1) || !errors.Is(err, claimsql.ErrTorn) || !strings.Contains(err.Error(), tt.says) || errors.Is(err, hookonce.ErrTraceLost) {
						t.Fatalf("copy %d: token %d, error %v", i+1, c.Token, err)
					}
					mustBe(t, store, name, tt.state, claimsql.ErrTorn.Error()[:80])
				}
				happened(t, pool, name, 2*tt.effects)
				for _, want := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate} {
					c, err := store.Within(t.Context(), request(name), func(pgx.Tx, hookonce.Claim) error { return nil })
					if err != nil || c.Verdict != want {
						t.Errorf("the next copy was answered %v, %v; want %v", c.Verdict, err, want)
					}
				}
			})
		}
	})
}

// late is a handler's error after which others get to the key before the trace is left: its text is asked for in between.
type late struct{ meanwhile func() }

func (e late) Error() string {
	e.meanwhile()
	return "the connection broke"
}

// An attempt that failed opens nobody else's claim, made at the same time and under the same number: neither one whose transaction
// was rolled back, nor one whose own claim was purged.
func TestFailureOpensNobodyElsesClaim(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		store = pgstore.New(pool, pgstore.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) }))
		for _, statement := range []string{"ROLLBACK", "SELECT 1", "COMMIT"} {
			key := "others " + statement
			other := make(chan hookonce.Claim, 1)
			_, err := store.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
				_, err := tx.Exec(t.Context(), statement)
				return errors.Join(err, late{sync.OnceFunc(func() {
					mustExec(t, pool, "DELETE FROM hookonce.claims")
					c, err := store.Within(t.Context(), request(key), func(pgx.Tx, hookonce.Claim) error { return nil })
					if err != nil {
						t.Error(err)
					}
					other <- c
				})})
			})
			if c := <-other; err == nil || errors.Is(err, claimsql.ErrTorn) || c.Verdict != hookonce.Acquired {
				t.Errorf("%s: error %v, the other one was answered %v", key, err, c.Verdict)
			}
			mustBe(t, store, key, hookonce.StateDone, "")
		}
	})
}

// A claim that the handler committed and that is opened again was done for a copy in between, of this process or of another.
// No cache keeps that, or the next copies would be told that the work is done.
func TestCacheDoesNotKeepWhatIsOpenedAgain(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, _ *pgxpool.Pool) {
		caches := map[string]*hookonce.CachedStore[pgx.Tx]{}
		for _, process := range []string{"this", "another"} {
			caches[process] = hookonce.Cached(store, hookonce.NewMemoryCache(10))
		}
		unexpected := func(pgx.Tx, hookonce.Claim) error { return errors.New("a copy ran the work") }
		_, err := caches["this"].Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
			if _, err := tx.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
			for process, s := range caches {
				if c, err := s.Within(t.Context(), request("evt_1"), unexpected); err != nil || c.Verdict != hookonce.Duplicate {
					t.Errorf("in between a copy in %s process is told %v, %v", process, c.Verdict, err)
				}
				held := request("evt_1")
				held.Lease = time.Minute
				if c, err := s.Claim(t.Context(), held); err != nil || c.Verdict != hookonce.Duplicate {
					t.Errorf("in between a lease in %s process is told %v, %v", process, c.Verdict, err)
				}
			}
			return errDeclined
		})
		if !errors.Is(err, claimsql.ErrTorn) {
			t.Fatalf("the handler that committed has failed with %v", err)
		}
		for process, s := range caches {
			c, err := s.Within(t.Context(), request("evt_1"), func(pgx.Tx, hookonce.Claim) error { return errDeclined })
			if c.Verdict != hookonce.Acquired || !errors.Is(err, errDeclined) {
				t.Errorf("the next copy in %s process is told %v, %v", process, c.Verdict, err)
			}
		}
	})
}

// Where the row does not tell any more that the claim is the attempt's, it stays done, and the error says that work may be lost.
func TestChangeAfterTheHandlersCommitIsTold(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, change := range map[string]string{
			"by others":                         "UPDATE hookonce.claims SET last_error = 'looked at' WHERE key = $1",
			"before the commit, in a savepoint": "",
		} {
			_, err := store.Within(t.Context(), request(name), func(tx pgx.Tx, _ hookonce.Claim) error {
				if change == "" {
					part, err := tx.Begin(t.Context())
					if err != nil {
						return err
					}
					if _, err := part.Exec(t.Context(), "UPDATE hookonce.claims SET last_error = 'looked at' WHERE key = $1", name); err != nil {
						return err
					}
					if err := part.Commit(t.Context()); err != nil {
						return err
					}
				}
				if _, err := tx.Exec(t.Context(), "COMMIT"); err != nil {
					return err
				}
				if change != "" {
					mustExec(t, pool, change, name)
				}
				return errDeclined
			})
			if !errors.Is(err, errDeclined) || !errors.Is(err, claimsql.ErrStays) || !errors.Is(err, hookonce.ErrTraceLost) || errors.Is(err, claimsql.ErrTorn) {
				t.Errorf("%s: %v", name, err)
			}
			mustBe(t, store, name, hookonce.StateDone, "looked at")
		}
	})
}

// An attempt of which nothing is to be left may be forgotten only if the server says that its handler committed nothing.
func TestForgottenAttemptThatMayStand(t *testing.T) {
	t.Parallel() // it waits for a server of its own
	cluster := pgtest.Start(t, pgtest.Options{})
	pool := open(t, cluster.DSN(t), "")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	for _, commits := range []bool{false, true} {
		_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
			if !commits {
				return hookonce.Forget(errDeclined)
			}
			if _, err := tx.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
			if err := cluster.Kill(); err != nil {
				t.Error(err)
			}
			return hookonce.Forget(errDeclined)
		})
		if !errors.Is(err, errDeclined) || errors.Is(err, hookonce.ErrTraceLost) != commits {
			t.Errorf("the handler committed: %v, error is %v", commits, err)
		}
	}
}

// The store looks whatever way a statement went: through the connection, also that of rows, or rewritten.
func TestUnseenEndsOfTheTransaction(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, end := range map[string]func(ctx context.Context, tx pgx.Tx, statement string) error{
			"connection": func(ctx context.Context, tx pgx.Tx, statement string) error {
				_, err := tx.Conn().Exec(ctx, statement)
				return err
			},
			"connection of rows": func(ctx context.Context, tx pgx.Tx, statement string) error {
				rows, err := tx.Query(ctx, "SELECT 1")
				if err != nil {
					return err
				}
				rows.Close()
				_, err = rows.Conn().Exec(ctx, statement)
				return err
			},
			"rewritten": func(ctx context.Context, tx pgx.Tx, statement string) error {
				_, err := tx.Exec(ctx, "SELECT 1", rewriter(statement))
				return err
			},
			"rewritten in a mode": func(ctx context.Context, tx pgx.Tx, statement string) error {
				_, err := tx.Exec(ctx, "SELECT 1", pgx.QueryExecModeSimpleProtocol, rewriter(statement))
				return err
			},
			"rewritten in a batch": func(ctx context.Context, tx pgx.Tx, statement string) error {
				var b pgx.Batch
				b.Queue("SELECT 1", rewriter(statement))
				return tx.SendBatch(ctx, &b).Close()
			},
		} {
			for statement, effects := range map[string]int{"ROLLBACK AND CHAIN": 0, "COMMIT AND CHAIN": 2} {
				key := name + " " + statement
				_, err := store.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
					return errors.Join(effect(t.Context(), tx, key), end(t.Context(), tx, statement), effect(t.Context(), tx, key))
				})
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
					t.Errorf("%s: %v", key, err)
				}
				happened(t, pool, key, effects)
			}
		}
	})
}

// What follows a ROLLBACK in one message would be stored without the claim. A handler that hides the refusal has done nothing.
func TestBatchOfAHandlerEndsNoTransaction(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for i, end := range []struct {
			query     string
			arguments []any
		}{
			{"ROLLBACK", nil}, {"-- c\nrollback and chain;", nil}, {"COMMIT", nil}, {"ABORT", nil}, {"END;", nil}, {"PREPARE TRANSACTION 'a'", nil},
			{"PREPARE TRANSACTION'a'", nil}, {"BEGIN", nil}, {"START TRANSACTION", nil}, {"ROLLBACK/**/", nil}, {"ROLLBACK--x", nil},
			{"ROLLBACK /* back to start */", nil}, {"/* /* */ */ ROLLBACK", nil}, {";/**/ROLLBACK", nil}, {"SELECT 1; ROLLBACK", nil},
			{"COMMIT AND CHAIN", nil}, {"COMMIT WORK", nil}, {"END WORK", nil}, {"ABORT WORK", nil}, {"BEGIN WORK", nil},
			{"SET LOCAL work_mem = '4MB'; ROLLBACK", nil}, {"undo", nil}, {"SELECT 1", []any{rewriter("ROLLBACK")}},
		} {
			for _, hidden := range []bool{false, true} {
				key := fmt.Sprint("batch ", i, hidden)
				_, err := store.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
					var b pgx.Batch
					b.Queue("INSERT INTO effects VALUES ($1)", key)
					b.Queue(end.query, end.arguments...)
					b.Queue("INSERT INTO effects VALUES ($1)", key)
					if err := tx.SendBatch(t.Context(), &b).Close(); !hidden {
						return err
					}
					return nil
				})
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
					t.Errorf("%s, hidden %v: %v", end.query, hidden, err)
				}
				mustBe(t, store, key, hookonce.StateFailed, map[bool]string{false: "ends by itself", true: "the store refused"}[hidden])
				happened(t, pool, key, 0)
			}
		}
		_, err := store.Within(t.Context(), request("savepoints"), func(tx pgx.Tx, _ hookonce.Claim) error {
			var b pgx.Batch
			for _, statement := range []string{"SAVEPOINT a", "INSERT INTO effects VALUES ('savepoints')", "ROLLBACK TO a", "ROLLBACK WORK TO SAVEPOINT a", "RELEASE a", "SET LOCAL work_mem = '4MB'", "LOCK TABLE effects IN SHARE MODE"} {
				b.Queue(statement)
			}
			return tx.SendBatch(t.Context(), &b).Close()
		})
		if err != nil {
			t.Error(err)
		}
		happened(t, pool, "savepoints", 0)
	})
}

// Events without a key are known by the number of their transaction as well.
func TestHandlerEndsTheTransactionOfAnUnkeyedEvent(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for statement, effects := range map[string]int{"ROLLBACK AND CHAIN": 0, "COMMIT AND CHAIN": 2} {
			_, err := store.Within(t.Context(), request(""), func(tx pgx.Tx, _ hookonce.Claim) error {
				_ = effect(t.Context(), tx, statement)
				_, err := tx.Exec(t.Context(), statement)
				return errors.Join(err, effect(t.Context(), tx, statement))
			})
			if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Errorf("%s: error is %v", statement, err)
			}
			happened(t, pool, statement, effects)
		}
	})
}

// A handler that keeps its transaction can do nothing with it any more: the connection is somebody else's.
func TestTransactionIsOverAfterTheHandler(t *testing.T) {
	store, _ := newStore(t)
	var kept, part pgx.Tx
	_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) (err error) {
		kept = tx
		part, err = tx.Begin(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Exec":     func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "SELECT 1"); return err },
		"Query":    func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Query(ctx, "SELECT 1"); return err },
		"QueryRow": func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, "SELECT 1").Scan(nil) },
		"Prepare":  func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Prepare(ctx, "one", "SELECT 1"); return err },
		"Begin":    func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Begin(ctx); return err },
		"CopyFrom": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id"}, pgx.CopyFromRows(nil))
			return err
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx) error { return tx.SendBatch(ctx, new(pgx.Batch)).Close() },
	} {
		for _, tx := range []pgx.Tx{kept, part} {
			if err := use(t.Context(), tx); !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("%s: %v, want ErrTxClosed", name, err)
			}
		}
	}
	if err := errors.Join(part.Rollback(t.Context()), part.Commit(t.Context())); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("the savepoint ended: %v", err)
	}
}

// happened checks how many effects there are.
func happened(t *testing.T, pool *pgxpool.Pool, id string, want int) {
	t.Helper()
	all, err := testdb.Counts(t.Context(), pool, "effects")
	if err != nil || all[id] != want {
		t.Errorf("%d effects of %s, %v; want %d", all[id], id, err, want)
	}
}
