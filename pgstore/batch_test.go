package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// batches is the conformance suite's configuration for handlers that queue their statements.
func batches(t *testing.T, admin, dsn, parameters string) storetest.TxConfig[*pgstore.Batch] {
	connect := func(t testing.TB) *pgxpool.Pool { return open(t, dsn, parameters) }
	return (&testdb.Postgres{Admin: open(t, admin, ""), Pool: connect, Prefix: "case"}).Batches()
}

func TestBatchConformance(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	cfg := batches(t, dsn, pgtest.Sessions(t, dsn), "")
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
}

// Every way in which pgx can talk to the server, a pooler, and the stricter isolation levels.
func TestBatchConnections(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	for _, parameters := range []string{
		"default_query_exec_mode=cache_describe", "default_query_exec_mode=exec", "default_query_exec_mode=simple_protocol",
		"default_transaction_isolation=repeatable%20read", "default_transaction_isolation=serializable",
	} {
		t.Run(parameters, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			storetest.RunTx(t, batches(t, dsn, dsn, parameters))
		})
	}
	t.Run("PgBouncer", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		cfg := batches(t, dsn, pgtest.PgBouncer(t, dsn), "default_query_exec_mode=exec")
		storetest.RunTx(t, cfg)
		storetest.RunTxConcurrent(t, cfg)
	})
}

// The connection is cut before the end of a batch reaches the server, or after the server carried it out.
func TestBatchFaults(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	p, through := newProxy(t, dsn)
	storetest.RunFaults(t, testdb.FaultyBatches(batches(t, dsn, through, "default_query_exec_mode=exec"), p))
}

// queueEffect is a handler that has the effect.
func queueEffect(key string) func(*pgstore.Batch, hookonce.Claim) error {
	return func(b *pgstore.Batch, _ hookonce.Claim) error {
		b.Queue("INSERT INTO effects (id) VALUES ($1)", key)
		return nil
	}
}

// Wherever the connection is lost in the one round trip, the outcome is unknown, and the next copy finds the truth: the effect
// happens once.
func TestBatchIsCutAnywhere(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "default_query_exec_mode=exec")
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	store := pgstore.New(pool).Batches()
	cuts := map[string]func(){}
	for message := range 9 { // of claim and effect: Parse, Bind, Describe, Execute; and Sync
		for _, persisted := range []bool{false, true} {
			cuts[fmt.Sprintf("message %d, persisted: %v", message, persisted)] = func() {
				var seen atomic.Int64
				p.Fail(func([]byte) bool { return seen.Add(1) == int64(message)+1 }, persisted)
			}
		}
	}
	for _, after := range []int{0, 1, 5, 10, 40, 80, 120, 160, 200} {
		cuts[fmt.Sprintf("%d bytes of the answer", after)] = func() { p.FailAnswer(after) }
	}
	for name, cut := range cuts {
		within := func() (hookonce.Claim, error) { return store.Within(t.Context(), request(name), queueEffect(name)) }
		mustClaim(t, store.Store, "warm "+name, hookonce.Acquired) // the connection is open
		cut()
		c, err := within()
		p.Fail(func([]byte) bool { return false }, false) // answers that were short enough arrived in whole
		if err != nil && !errors.Is(err, hookonce.ErrUnknownOutcome) || err == nil && !strings.Contains(name, "bytes") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		c, err = within()
		for errors.Is(err, hookonce.ErrUnknownOutcome) { // the connection that was cut was in the pool
			c, err = within()
		}
		if err != nil || c.Verdict != hookonce.Acquired && c.Verdict != hookonce.Duplicate {
			t.Errorf("%s, the next copy: %+v, %v", name, c, err)
		}
		happened(t, pool, name, 1)
	}
}

// An event that failed before is committed as [pgstore.Store.Within] does it, and with the same words.
func TestBatchCommitOfASecondAttempt(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "default_query_exec_mode=exec")
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	store := pgstore.New(pool).Batches()
	for key, want := range map[string]hookonce.Verdict{"not persisted": hookonce.Acquired, "persisted": hookonce.Duplicate} {
		declined := errors.New("declined")
		_, err := store.Within(t.Context(), request(key), func(*pgstore.Batch, hookonce.Claim) error { return declined })
		if !errors.Is(err, declined) {
			t.Errorf("%s: %v", key, err)
		}
		p.Fail(testdb.IsCommit, want == hookonce.Duplicate)
		if _, err = store.Within(t.Context(), request(key), queueEffect(key)); !errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("%s: %v", key, err)
		}
		if c, err := store.Within(t.Context(), request(key), queueEffect(key)); err != nil || c.Verdict != want {
			t.Errorf("%s, the next copy: %+v, %v", key, c, err)
		}
		happened(t, pool, key, 1)
	}
}

// What a batch costs in round trips.
func TestBatchRoundTrips(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "pool_max_conns=1")
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	store := pgstore.New(pool).Batches()
	var trips atomic.Int64
	p.Fail(func(message []byte) bool { // counts, and never cuts
		if message[0] == 'Q' || message[0] == 'S' {
			trips.Add(1)
		}
		return false
	}, false)
	read := func(b *pgstore.Batch, c hookonce.Claim) error {
		b.Queue("INSERT INTO effects (id) VALUES ($1)", c.Key).Exec(func(pgconn.CommandTag) error { return nil })
		return nil
	}
	run := func(key string, want hookonce.Verdict, fn func(*pgstore.Batch, hookonce.Claim) error) {
		t.Helper()
		if c, err := store.Within(t.Context(), request(key), fn); err != nil || c.Verdict != want {
			t.Errorf("%s: %+v, %v", key, c, err)
		}
	}
	mustClaim(t, store.Store, "old", hookonce.Acquired)
	for round, prefix := range []string{"first ", "second "} { // the first prepares the statements
		for _, tt := range []struct {
			key  string
			want hookonce.Verdict
			fn   func(*pgstore.Batch, hookonce.Claim) error
			n    int64
		}{
			{prefix + "new", hookonce.Acquired, queueEffect("new"), 1},
			{"", hookonce.Unkeyed, queueEffect("no key"), 1},
			{prefix + "read", hookonce.Acquired, read, 3},
			{"old", hookonce.Duplicate, queueEffect("old"), 3}, // pgx forgets what it prepared of a batch that failed, in one of its own
		} {
			before := trips.Load()
			run(tt.key, tt.want, tt.fn)
			if n := trips.Load() - before; round > 0 && n != tt.n {
				t.Errorf("%q: %d round trips, want %d", tt.key, n, tt.n)
			}
			if tt.want == hookonce.Duplicate { // pgx prepares anew what failed
				run(prefix+"again", hookonce.Acquired, queueEffect("again"))
			}
		}
	}
}

// Whatever is wrong with a statement, nothing of the batch stays, and the attempt is on record.
func TestBatchOfBadStatements(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		mustExec(t, pool, `DROP TABLE IF EXISTS child, parent`)
		mustExec(t, pool, `CREATE TABLE parent (id int PRIMARY KEY)`)
		mustExec(t, pool, `CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`)
		mustExec(t, pool, `CREATE OR REPLACE PROCEDURE commits() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'`)
		for name, tt := range map[string]struct {
			query string
			args  []any
			says  string
		}{
			"it fails":                {"SELECT 1/0", nil, "22012"},
			"it is no SQL":            {"INSERT INTO nowhere VALUES (", nil, "42601"},
			"there is no table":       {"INSERT INTO nowhere VALUES (1)", nil, "42P01"},
			"an argument is missing":  {"SELECT $1::int + $2::int", []any{1}, "argument|parameter"},
			"an argument has no form": {"SELECT $1::int", []any{make(chan int)}, "chan int"},
			"the commit is refused":   {"INSERT INTO child VALUES (1)", nil, "23503"},
			"a procedure commits":     {"CALL commits()", nil, "2D000"},
			"a block commits":         {"DO 'BEGIN COMMIT; END'", nil, "2D000|semicolon"},
			"a count is asserted":     {"WITH c AS (UPDATE parent SET id = 2 WHERE id = 1 RETURNING 1) SELECT 1 / count(*) FROM c", nil, "22012"},
			"ROLLBACK":                {"ROLLBACK", nil, "ends by itself"},
			"ROLLBACK AND CHAIN":      {"/* c */ ROLLBACK AND CHAIN", nil, "ends by itself"},
			"ROLLBACK after comments": {"/* /*/ select 1 */ */ ROLLBACK", nil, "ends by itself"},
			"COMMIT":                  {"COMMIT", nil, "ends by itself"},
			"END":                     {"END", nil, "ends by itself"},
			"ABORT":                   {"ABORT", nil, "ends by itself"},
			"BEGIN":                   {"BEGIN", nil, "ends by itself"},
			"START TRANSACTION":       {"START TRANSACTION", nil, "ends by itself"},
			"COMMIT AND CHAIN":        {"-- c\nCOMMIT AND CHAIN", nil, "ends by itself"},
			"CALL after comments":     {"/* /*/ select 1 */ */ CALL commits()", nil, "2D000"},
			"VACUUM":                  {"VACUUM parent", nil, "25001"},
			"several statements":      {"SELECT 1; SELECT 1/0", nil, "42601|semicolon"},
			"a rewritten statement":   {"SELECT 1", []any{pgx.NamedArgs{}, rewriter("COMMIT")}, "queue the statement that it makes"},
			"a comment has no end":    {"INSERT INTO parent VALUES (1) /* note", nil, "42601"},
			"a quote has no end":      {"INSERT INTO parent VALUES (1) RETURNING 'it", nil, "42601"},
			"a tag has no end":        {"SELECT $a$", nil, "42601"},
		} {
			t.Run(name, func(t *testing.T) {
				within := func(bad bool) (hookonce.Claim, error) {
					return store.Batches().Within(t.Context(), request(name), func(b *pgstore.Batch, c hookonce.Claim) error {
						b.Queue("INSERT INTO effects VALUES ($1)", name)
						if bad {
							b.Queue(tt.query, tt.args...)
						}
						b.Queue("INSERT INTO effects VALUES ($1)", name)
						return nil
					})
				}
				c, err := within(true)
				// Class 08 is what poolers say of a server that they lost.
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) && !strings.Contains(err.Error(), "08P01") || errors.Is(err, hookonce.ErrTraceLost) || c.Verdict != hookonce.Acquired {
					t.Fatalf("%+v, %v", c, err)
				}
				if !regexp.MustCompile(tt.says).MatchString(err.Error()) {
					t.Errorf("%v does not say %q", err, tt.says)
				}
				mustBe(t, store, name, hookonce.StateFailed, "")
				happened(t, pool, name, 0)
				if c, err = within(false); err != nil || c.Verdict != hookonce.Acquired || c.Token != 2 {
					t.Errorf("the next copy was answered %+v, %v", c, err)
				}
				happened(t, pool, name, 2)
			})
		}
	})
}

// A statement of the handler's own that waited in vain is a failed attempt: nobody else has the
// key.
func TestBatchWaitsInVainForItsOwn(t *testing.T) {
	store, _ := newStore(t)
	c, err := store.Batches().Within(t.Context(), request("evt_1"), func(b *pgstore.Batch, _ hookonce.Claim) error {
		b.Queue("DO 'BEGIN RAISE lock_not_available; END'")
		return nil
	})
	if err == nil || errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Acquired {
		t.Errorf("%+v, %v", c, err)
	}
	mustBe(t, store, "evt_1", hookonce.StateFailed, "55P03")
}

// Functions read the results before the commit, and their error rolls everything back.
func TestBatchResultsAreRead(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, failure := range map[string]error{"kept": nil, "undone": errors.New("not enough")} {
			var rows int64
			var sum int
			c, err := store.Batches().Within(t.Context(), request(name), func(b *pgstore.Batch, _ hookonce.Claim) error {
				b.Queue("INSERT INTO effects VALUES ($1), ($1)", name).Exec(func(tag pgconn.CommandTag) error { rows = tag.RowsAffected(); return nil })
				b.Queue("SELECT count(*) FROM effects WHERE id = @id", pgx.NamedArgs{"id": name}).QueryRow(func(row pgx.Row) error {
					return errors.Join(row.Scan(&sum), failure)
				})
				return nil
			})
			if !errors.Is(err, failure) || c.Verdict != hookonce.Acquired || rows != 2 || sum != 2 {
				t.Errorf("%s: %+v, %v; %d rows, sum %d", name, c, err, rows, sum)
			}
			happened(t, pool, name, map[bool]int{true: 2}[failure == nil])
		}
	})
}

// The handler is told the attempt that it is, and is called again only if that was another one than the first.
func TestBatchIsToldTheAttempt(t *testing.T) {
	store, pool := newStore(t)
	declined := errors.New("declined")
	for i, tt := range []struct {
		outcome error
		told    []int64
	}{{declined, []int64{1}}, {declined, []int64{1, 2}}, {nil, []int64{1, 3}}, {nil, []int64{1}}} {
		var told []int64
		_, err := store.Batches().Within(t.Context(), request("evt_1"), func(b *pgstore.Batch, c hookonce.Claim) error {
			told = append(told, c.Token)
			return errors.Join(queueEffect("evt_1")(b, c), tt.outcome)
		})
		if !errors.Is(err, tt.outcome) || fmt.Sprint(told) != fmt.Sprint(tt.told) {
			t.Errorf("attempt %d: %v, told %v; want %v", i+1, err, told, tt.told)
		}
	}
	happened(t, pool, "evt_1", 1)
}

// A process of the server that dies while it commits has said nothing about the outcome.
func TestServerDiesDuringTheBatch(t *testing.T) {
	store, pool := newStore(t)
	mustExec(t, pool, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$`)
	mustExec(t, pool, `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON effects
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)
	_, err := store.Batches().Within(t.Context(), request("evt_1"), queueEffect("evt_1"))
	if !errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("error is %v", err)
	}
	mustBe(t, store, "evt_1", hookonce.StateFailed, "unknown")
}

// A copy that waits does the work when the owner gives the key up without a trace, or dies, however pgx talks to the server, and
// whether or not it knows the statements by then.
func TestBatchWaitsForAnOwnerThatGivesUp(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool := open(t, pgtest.DSN(t), "default_query_exec_mode="+mode)
			pgtest.Migrate(t, pool, "")
			mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
			store := pgstore.New(pool, pgstore.WithWait(time.Minute))
			for i, giveUp := range []func(pgx.Tx){
				func(tx pgx.Tx) { _ = tx.Rollback(t.Context()) },
				func(tx pgx.Tx) { mustExec(t, pool, "SELECT pg_terminate_backend($1)", int(tx.Conn().PgConn().PID())) },
				func(tx pgx.Tx) { _ = tx.Rollback(t.Context()) },
			} {
				key := fmt.Sprint("evt_", i)
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.ClaimTx(t.Context(), tx, request(key)); err != nil {
					t.Fatal(err)
				}
				result := make(chan error, 1)
				go func() {
					c, err := store.Batches().Within(t.Context(), request(key), func(b *pgstore.Batch, _ hookonce.Claim) error {
						b.Queue("INSERT INTO effects VALUES (@id)", pgx.NamedArgs{"id": key})
						return nil
					})
					result <- errors.Join(err, c.Verdict.Err())
				}()
				awaitWaiting(t, pool)
				giveUp(tx)
				if err := <-result; err != nil {
					t.Errorf("%s: %v", key, err)
				}
				_ = tx.Rollback(t.Context())
				happened(t, pool, key, 1)
				mustBe(t, store, key, hookonce.StateDone, "")
			}
		})
	}
}

// A copy waits for one that holds the key in a transaction, and both doors see the same claims.
func TestBatchBesideATransaction(t *testing.T) {
	store, pool := newStore(t, pgstore.WithWait(time.Minute))
	owner := hold(t, store, "evt_1")
	second := make(chan hookonce.Claim, 1)
	go func() {
		c, err := store.Batches().Within(t.Context(), request("evt_1"), queueEffect("evt_1"))
		if err != nil {
			t.Error(err)
		}
		second <- c
	}()
	awaitWaiting(t, pool)
	owner.finish <- nil
	if err := <-owner.result; err != nil {
		t.Error(err)
	}
	if c := <-second; c.Verdict != hookonce.Duplicate {
		t.Errorf("the copy was answered %+v", c)
	}
	happened(t, pool, "evt_1", 0)
}

// What is queued when the batch was sent would never run.
func TestBatchIsOverAfterTheHandler(t *testing.T) {
	store, _ := newStore(t)
	var kept *pgstore.Batch
	if _, err := store.Batches().Within(t.Context(), request("evt_1"), func(b *pgstore.Batch, _ hookonce.Claim) error { kept = b; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Batches().ClaimTx(t.Context(), kept, request("evt_2")); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("ClaimTx: %v", err)
	}
	own := pgstore.NewBatch()
	if err := errors.Join(store.Batches().Commit(t.Context(), own), store.Batches().Commit(t.Context(), own)); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Commit: %v", err)
	}
	defer func() {
		if p := recover(); p == nil {
			t.Error("Queue took a statement")
		}
	}()
	kept.Queue("SELECT 1")
}

// A handler's batch is committed with its claim, and not by the handler: the statements would be carried out twice.
func TestBatchIsNotTheHandlersToCommit(t *testing.T) {
	store, pool := newStore(t)
	s := store.Batches()
	commits := func(heeds bool) func(*pgstore.Batch, hookonce.Claim) error {
		return func(b *pgstore.Batch, c hookonce.Claim) error {
			err := errors.Join(queueEffect("evt_1")(b, c), s.Commit(t.Context(), b))
			if err == nil || !strings.Contains(err.Error(), "sent by itself when the handler returns") {
				t.Errorf("attempt %d: Commit: %v", c.Token, err)
			}
			if heeds {
				return err
			}
			return nil
		}
	}
	for _, tt := range []struct {
		heeds   bool
		effects int
	}{{true, 0}, {true, 0}, {false, 1}, {false, 1}} {
		if c, err := s.Within(t.Context(), request("evt_1"), commits(tt.heeds)); (err != nil) != tt.heeds {
			t.Errorf("%+v, %v", c, err)
		}
		happened(t, pool, "evt_1", tt.effects)
	}
}

// What a handler claims besides its event is read on the connection that its attempt has by then: a pool of one is enough. The
// event's own key is taken.
func TestBatchClaimsMore(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	s := pgstore.New(pool).Batches()
	declined := errors.New("declined")
	within := func(key string, outcome error, verdicts ...hookonce.Verdict) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var got []hookonce.Verdict
		_, err := s.Within(ctx, request(key), func(b *pgstore.Batch, c hookonce.Claim) error {
			for _, key := range []string{key, "shared", "shared"} {
				more, err := s.ClaimTx(ctx, b, request(key))
				if err != nil {
					return err
				}
				got = append(got, more.Verdict)
			}
			if got[len(got)-2] == hookonce.Acquired {
				b.Queue("INSERT INTO effects VALUES ('shared')")
			}
			return outcome
		})
		if !errors.Is(err, outcome) || !slices.Equal(got, verdicts) {
			t.Errorf("%s: %v, verdicts %v; want %v, %v", key, err, got, outcome, verdicts)
		}
	}
	const won, had = hookonce.Acquired, hookonce.Duplicate
	within("evt_1", declined, had, won, had)
	within("evt_1", declined, had, won, had, had, won, had) // ahead, and as the second attempt
	within("evt_1", nil, had, won, had, had, won, had)
	within("evt_2", declined, had, had, had)
	within("evt_2", nil, had, had, had, had, had, had)
	happened(t, pool, "shared", 1)
}

// Texts that are put together, as simple_protocol does it, must not make other statements of each other.
func TestBatchStatementsStandAlone(t *testing.T) {
	modes(t, func(t *testing.T, store *pgstore.Store, pool *pgxpool.Pool) {
		for name, texts := range map[string][]string{
			"comment": {"INSERT INTO effects VALUES ('comment') /* note", "INSERT INTO effects VALUES ('comment')", "INSERT INTO effects /* note */ VALUES ('comment') */"},
			"quote":   {"SELECT '", "INSERT INTO effects VALUES ('quote')", "SELECT '"},
			"dollar":  {"SELECT $a$", "INSERT INTO effects VALUES ('dollar')", "SELECT $a$"},
		} {
			_, err := store.Batches().Within(t.Context(), request(name), func(b *pgstore.Batch, _ hookonce.Claim) error {
				for _, text := range texts {
					b.Queue(text)
				}
				return nil
			})
			if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Errorf("%s: %v", name, err)
			}
			mustBe(t, store, name, hookonce.StateFailed, "42601")
			happened(t, pool, name, 0)
		}
	})
}

// The name of a prepared statement is never taken for that, or it might end the transaction, whatever it looks like.
func TestBatchTakesNoNames(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := open(t, dsn, "")
	pgtest.Migrate(t, admin, "")
	mustExec(t, admin, "CREATE TABLE effects (id text NOT NULL)")
	mustExec(t, admin, "CREATE PROCEDURE commits() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'")
	names := map[string]string{"insert payment": "CALL commits()", "with-tx": "CALL commits()", "update:done": "COMMIT", "select payments": "COMMIT", "finish": "COMMIT"}
	cfg := admin.Config()
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		for name, text := range names {
			if _, err := conn.Prepare(ctx, name, text); err != nil {
				return err
			}
		}
		return nil
	}
	pool := testdb.Pool(t, cfg)
	store := pgstore.New(pool)
	for name := range names {
		_, err := store.Batches().Within(t.Context(), request(name), func(b *pgstore.Batch, c hookonce.Claim) error {
			_ = queueEffect(name)(b, c)
			b.Queue(name)
			return queueEffect(name)(b, c)
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("%s: %v", name, err)
		}
		mustBe(t, store, name, hookonce.StateFailed, "42")
		happened(t, pool, name, 0)
	}
}

// What is done to the arguments' slice, and to a statement, after it was queued and sent changes nothing.
func TestBatchKeepsItsArguments(t *testing.T) {
	store, pool := newStore(t)
	_, err := store.Batches().Within(t.Context(), request("evt_1"), func(b *pgstore.Batch, _ hookonce.Claim) error {
		args := make([]any, 1)
		for _, args[0] = range []string{"a", "b"} {
			b.Queue("INSERT INTO effects VALUES ($1)", args...)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	happened(t, pool, "a", 1)
	happened(t, pool, "b", 1)
}

// Whoever takes a key between the handler's claim and the batch, and however it is told, the batch fails as one that is busy.
func TestBatchOfATakenKey(t *testing.T) {
	for _, isolation := range []string{"read%20committed", "repeatable%20read", "serializable"} {
		for _, ends := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the other ends in time: %v", isolation, ends), func(t *testing.T) {
				t.Parallel()
				pool := open(t, pgtest.DSN(t), "default_transaction_isolation="+isolation)
				pgtest.Migrate(t, pool, "")
				mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
				wait := map[bool]time.Duration{true: time.Minute, false: 300 * time.Millisecond}[ends]
				store := pgstore.New(pool, pgstore.WithWait(wait))
				other := hold(t, store, "taken")
				b := pgstore.NewBatch()
				b.Queue("INSERT INTO effects VALUES ('committed')")
				if _, err := store.Batches().ClaimTx(t.Context(), b, request("taken")); err != nil {
					t.Fatal(err)
				}
				committed := make(chan error, 1)
				go func() { committed <- store.Batches().Commit(t.Context(), b) }()
				if ends {
					awaitWaiting(t, pool)
				} else {
					_, err := store.Batches().Within(t.Context(), request("evt_1"), func(b *pgstore.Batch, _ hookonce.Claim) error {
						b.Queue("INSERT INTO effects VALUES ('within')")
						_, err := store.Batches().ClaimTx(t.Context(), b, request("taken"))
						return err
					})
					if !errors.Is(err, hookonce.ErrBusy) {
						t.Errorf("Within: %v", err)
					}
					mustBe(t, store, "evt_1", hookonce.StateFailed, "")
					if err := <-committed; !errors.Is(err, hookonce.ErrBusy) {
						t.Errorf("Commit: %v", err)
					}
				}
				other.finish <- nil
				if err := <-other.result; err != nil {
					t.Error(err)
				}
				if ends {
					if err := <-committed; !errors.Is(err, hookonce.ErrBusy) {
						t.Errorf("Commit: %v", err)
					}
				}
				happened(t, pool, "committed", 0)
				happened(t, pool, "within", 0)
			})
		}
	}
}

// A handler's failure is told also where the database is not there to record it, and a panic goes on.
func TestBatchFailsWithoutTheDatabase(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "default_query_exec_mode=exec")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	declined := errors.New("declined")
	within := func(fn func() error) (c hookonce.Claim, panicked any, err error) {
		mustClaim(t, store, fmt.Sprintf("warm %p", fn), hookonce.Acquired)
		p.Fail(func(message []byte) bool { return message[0] == 'P' }, false)
		defer p.Fail(func([]byte) bool { return false }, false)
		defer func() { panicked = recover() }()
		c, err = store.Batches().Within(t.Context(), request("evt_1"), func(*pgstore.Batch, hookonce.Claim) error { return fn() })
		return c, nil, err
	}
	c, _, err := within(func() error { return hookonce.Permanent(declined) })
	if c.Verdict != hookonce.Acquired || !errors.Is(err, declined) || !hookonce.IsPermanent(err) || !errors.Is(err, hookonce.ErrTraceLost) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, p, _ := within(func() error { panic("boom") }); p != "boom" {
		t.Errorf("the panic came out as %v", p)
	}
}

// Only what certainly is one statement that cannot end a transaction goes without BEGIN and COMMIT.
func TestBatchIsPlain(t *testing.T) {
	for query, want := range map[string]bool{
		"INSERT INTO t VALUES (1)": true, "  update t set a = 1 ;\n": true, "Delete from t": true, "MERGE INTO t": true, "select 1": true,
		"VALUES (1)": true, "WITH a AS (SELECT 1) SELECT * FROM a": true, "-- name: Add :exec\nINSERT INTO t VALUES (1)": true,
		"/* a */ -- b\r/* c */select 1": true, "INSERT\nINTO t VALUES (1)": true, "/**/ /***/select 1": true, "select(1)": true, "SELECT'a'": true, "select*from t": true,
		"": false, ";": false, "COMMIT": false, "end": false, "CALL p()": false, "DO 'x'": false, "SELECT 1; COMMIT": false, "EXECUTE a": false,
		"select_one": false, "insert2": false, "insert.a": false, "inserté": false, "select": false, "-- SELECT 1": false, "/* SELECT 1": false,
		"/* /* */ COMMIT -- */ SELECT 1\nselect 1": false, "/* a */COMMIT": false, "(SELECT 1)": false, "PREPARE TRANSACTION 'a'": false,
		"insert-payment": false, "with-tx": false, "select$x": false, "update:done": false, "select\u00a0x": false, "select ": false,
		"/* /*/ select 1 */ */ COMMIT": false, "/* /* a */ */ select 1": false, "/*/ select 1": false, "/*/*/ select 1 */ COMMIT": false,
		"VACUUM": false, "--\nBEGIN": false, "SET LOCAL a = 1": false, "EXPLAIN SELECT 1": false, "COPY t FROM STDIN": false,
	} {
		if got := pgstore.QueryOrChange(query); got != want {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
	for _, arguments := range [][]any{{rewriter("COMMIT")}, {rewriter("COMMIT"), 1}, {pgx.NamedArgs{}, rewriter("COMMIT")}, {pgx.StrictNamedArgs{}, rewriter("COMMIT"), 1}} {
		b := pgstore.NewBatch()
		b.Queue("SELECT 1", arguments...)
		if pgstore.Plain(b) {
			t.Error("what will be another statement is plain")
		}
	}
}

// rewriter makes another statement of the one that it is given to.
type rewriter string

func (r rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(r), nil, nil
}
