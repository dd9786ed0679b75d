package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
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
			{"undo", nil}, {"SELECT 1", []any{rewriter("ROLLBACK")}},
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
