package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
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

// mustClaim runs a handler that does nothing and checks the verdict.
func mustClaim(t *testing.T, s *pgstore.Store, key string, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Within(t.Context(), request(key), func(pgx.Tx, hookonce.Claim) error { return nil })
	if !errors.Is(err, want.Err()) || c.Verdict != want {
		t.Fatalf("Within(%s) = %+v, %v; want %v", key, c, err, want)
	}
	return c
}

// mustBe checks the state under key, and that its last error contains text.
func mustBe(t *testing.T, s *pgstore.Store, key string, want hookonce.State, text string) {
	t.Helper()
	c, err := s.Lookup(t.Context(), request(key).Ref)
	if err != nil || c.State != want || !strings.Contains(c.LastError, text) {
		t.Fatalf("stored claim is %+v, %v; want %s with an error that contains %q", c, err, want, text)
	}
}

// The bounded wait is for the claim alone: what the handler waits for is the user's business.
func TestHandlerKeepsItsLockTimeout(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := open(t, dsn, "lock_timeout=7000")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool, pgstore.WithWait(time.Second))
	failed := errors.New("declined")
	for _, result := range []error{failed, nil} { // a fresh key, and one that is taken over
		_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, c hookonce.Claim) error {
			for _, want := range []string{"7s", "9s"} {
				var got string
				if err := tx.QueryRow(t.Context(), "SHOW lock_timeout").Scan(&got); err != nil || got != want {
					t.Errorf("attempt %d: lock_timeout is %s, %v; want %s", c.Token, got, err, want)
				}
				if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '9s'"); err != nil {
					t.Error(err)
				}
			}
			return result
		})
		if !errors.Is(err, result) {
			t.Fatal(err)
		}
	}
}

// BEGIN travels with the claim, and a duplicate is read in the round trip that ends the transaction.
func TestRoundTrips(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "pool_max_conns=1")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	var trips atomic.Int64
	p.Fail(func(message []byte) bool { // counts, and never cuts
		if message[0] == 'Q' || message[0] == 'S' { // a simple query, or Sync, each of which is answered
			trips.Add(1)
		}
		return false
	}, false)
	count := func(want int64, f func()) {
		t.Helper()
		before := trips.Load()
		f()
		if got := trips.Load() - before; got != want {
			t.Errorf("%d round trips, want %d", got, want)
		}
	}
	claim := func(key string, want hookonce.Verdict) func() {
		return func() { mustClaim(t, store, key, want) }
	}
	claim("evt_0", hookonce.Acquired)() // the first of each prepares its statements
	claim("evt_0", hookonce.Duplicate)()
	count(2, claim("evt_1", hookonce.Acquired))
	count(2, claim("evt_1", hookonce.Duplicate))
	lease := func(key string) func() {
		return func() {
			if _, err := store.Claim(t.Context(), request(key)); err != nil {
				t.Error(err)
			}
		}
	}
	lease("evt_0")()
	count(1, lease("evt_2"))
	count(1, lease("evt_1"))
}

// A copy of finished or held work takes no row lock and writes nothing: its transaction is never
// given a number.
func TestDuplicateWritesNothing(t *testing.T) {
	store, pool := newStore(t)
	mustClaim(t, store, "done", hookonce.Acquired)
	if _, err := store.Claim(t.Context(), request("held")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]hookonce.Verdict{"done": hookonce.Duplicate, "held": hookonce.Busy} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			c, err := store.ClaimTx(t.Context(), tx, request(key))
			if !errors.Is(err, want.Err()) || c.Verdict != want {
				t.Fatalf("ClaimTx(%s) = %+v, %v", key, c, err)
			}
			var silent bool
			err = tx.QueryRow(t.Context(), "SELECT pg_current_xact_id_if_assigned() IS NULL").Scan(&silent)
			if !silent {
				t.Errorf("a %s claim wrote something", key)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// held is a transaction that holds a key in a handler of its own.
type held struct {
	pid    int // of the server's process
	finish chan<- error
	result <-chan error
}

func hold(t *testing.T, s *pgstore.Store, key string) held {
	t.Helper()
	pid, finish, result := make(chan int, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
			pid <- int(tx.Conn().PgConn().PID())
			return <-finish
		})
		result <- err
	}()
	return held{<-pid, finish, result}
}

// awaitWaiting returns when a statement in the database waits for a lock.
func awaitWaiting(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const waiting = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var found bool
		if err := pool.QueryRow(t.Context(), waiting).Scan(&found); err != nil {
			t.Fatal(err)
		}
		if found {
			return
		}
	}
	t.Fatal("nobody waits")
}

// There is no lease to wait out: when the server's process that holds the key dies, the copy that
// waits claims at once, with the first attempt's number.
func TestDeadOwnerFreesTheKey(t *testing.T) {
	store, pool := newStore(t, pgstore.WithWait(time.Minute))
	owner := hold(t, store, "evt_1")
	second := make(chan hookonce.Claim, 1)
	go func() {
		c, err := store.Within(t.Context(), request("evt_1"), func(pgx.Tx, hookonce.Claim) error { return nil })
		if err != nil {
			t.Error(err)
		}
		second <- c
	}()
	awaitWaiting(t, pool)
	mustExec(t, pool, "SELECT pg_terminate_backend($1)", owner.pid)
	if c := <-second; c.Verdict != hookonce.Acquired || c.Token != 1 {
		t.Errorf("the copy was answered %+v", c)
	}
	owner.finish <- nil
	if err := <-owner.result; err == nil {
		t.Error("the killed transaction was reported as committed")
	}
	mustBe(t, store, "evt_1", hookonce.StateDone, "")
}

// Everything that a handler can do wrong with its transaction is a failed attempt: rolled back, known,
// and on record.
func TestMisusedTransaction(t *testing.T) {
	// beside sends a statement while the rows of another one are open, and hides its error.
	beside := func(statement func(ctx context.Context, tx pgx.Tx)) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT generate_series(1, 3)")
			for err == nil && rows.Next() {
				statement(ctx, tx)
			}
			rows.Close()
			return err
		}
	}
	// late sends a statement, which the connection knows then, once more after the handler's own
	// time ran out, and hides its error.
	late := func(statement func(ctx context.Context, tx pgx.Tx)) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			statement(ctx, tx)
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			statement(ctx, tx)
			return nil
		}
	}
	// parted ends a part of the transaction, in which something was done, after the part's own time ran out.
	parted := func(end func(ctx context.Context, part pgx.Tx)) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			part, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			err = effect(ctx, part, "lost")
			cancel()
			end(ctx, part)
			return err
		}
	}
	const adds = "INSERT INTO effects VALUES ('lost') RETURNING id"
	query := func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, adds)
		rows.Close()
	}
	queryRow := func(ctx context.Context, tx pgx.Tx) { _ = tx.QueryRow(ctx, adds).Scan(new(string)) }
	batch := func(ctx context.Context, tx pgx.Tx) {
		var b pgx.Batch
		b.Queue(adds)
		_ = tx.SendBatch(ctx, &b).Close()
	}
	tests := []struct {
		name    string
		handler func(ctx context.Context, tx pgx.Tx) error
		text    string
	}{
		{"it returns nil after a failed statement", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			return map[bool]error{true: nil, false: errors.New("no error")}[err != nil]
		}, "one of its statements had failed"},
		{"it commits by itself", func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, "ends by itself"},
		{"it rolls back by itself", func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, "ends by itself"},
		{"it rolls back, and hides that it could not", func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.Rollback(ctx)
			return nil
		}, "remove Rollback"},
		{"it has a deferred Rollback", func(ctx context.Context, tx pgx.Tx) error {
			defer tx.Rollback(ctx)
			return nil
		}, "remove Rollback"},
		{"it sends statements while rows are open", beside(func(ctx context.Context, tx pgx.Tx) { _ = effect(ctx, tx, "lost") }),
			"one of its statements had failed: return the error: conn busy"},
		{"it asks for rows while rows are open", beside(query), "one of its statements had failed"},
		{"it asks for a row while rows are open", beside(queryRow), "one of its statements had failed"},
		{"it sends a batch while rows are open", beside(batch), "one of its statements had failed"},
		{"it copies rows while rows are open", beside(func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id"}, pgx.CopyFromRows([][]any{{"lost"}}))
		}), "one of its statements had failed"},
		{"it begins a savepoint while rows are open", beside(func(ctx context.Context, tx pgx.Tx) {
			_ = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error { return effect(ctx, part, "lost") })
		}), "one of its statements had failed"},
		{"it gives too few arguments", func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "INSERT INTO effects VALUES ($1)")
			return nil
		}, "one of its statements had failed"},
		{"it asks for a row, and gives too few arguments", func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.QueryRow(ctx, "INSERT INTO effects VALUES ($1) RETURNING id").Scan(new(string))
			return nil
		}, "one of its statements had failed"},
		{"it sends a batch, and gives too few arguments", func(ctx context.Context, tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue("INSERT INTO effects VALUES ($1)")
			_ = tx.SendBatch(ctx, &b).Close()
			return nil
		}, "one of its statements had failed"},
		{"it goes on after its own time ran out", late(func(ctx context.Context, tx pgx.Tx) { _ = effect(ctx, tx, "lost") }),
			"one of its statements had failed"},
		{"it asks for rows after its own time ran out", late(query), "one of its statements had failed"},
		{"it asks for a row after its own time ran out", late(queryRow), "one of its statements had failed"},
		{"it sends a batch after its own time ran out", late(batch), "one of its statements had failed"},
		{"it undoes a part after the part's time ran out", parted(func(ctx context.Context, part pgx.Tx) { _ = part.Rollback(ctx) }),
			"one of its statements had failed"},
		{"it keeps a part after the part's time ran out", parted(func(ctx context.Context, part pgx.Tx) { _ = part.Commit(ctx) }),
			"one of its statements had failed"},
		{"it keeps a part of which a statement was not sent", func(ctx context.Context, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				_ = effect(ctx, part, "lost")
				return nil
			})
		}, "one of its statements had failed"},
		{"it fails in a part whose time ran out", func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithCancel(ctx)
			_ = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
				err := effect(ctx, part, "lost")
				cancel()
				return errors.Join(err, errors.New("the service takes too long"))
			})
			return nil
		}, "one of its statements had failed"},
		{"it leaves rows open", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 1000)")
			return err
		}, "close them"},
		{"it ends the transaction with a statement", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "ROLLBACK")
			return err
		}, "rolled back before"},
		{"the commit is refused", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO child VALUES (1)")
			return err
		}, "commit: ERROR"},
	}
	store, pool := newStore(t)
	mustExec(t, pool, `CREATE TABLE parent (id int PRIMARY KEY)`)
	mustExec(t, pool, `CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := store.Within(t.Context(), request(tt.name), func(tx pgx.Tx, _ hookonce.Claim) error {
				return errors.Join(effect(t.Context(), tx, tt.name), tt.handler(t.Context(), tx))
			})
			if err == nil || !strings.Contains(err.Error(), tt.text) || errors.Is(err, hookonce.ErrUnknownOutcome) || errors.Is(err, hookonce.ErrTraceLost) {
				t.Errorf("error is %v, want a known one that contains %q", err, tt.text)
			}
			mustBe(t, store, tt.name, hookonce.StateFailed, tt.text)
			if happened, err := testdb.Counts(t.Context(), pool, "effects"); err != nil || len(happened) != 0 {
				t.Errorf("effects %v, %v", happened, err)
			}
		})
	}
}

// The handler's transaction is a whole pgx.Tx.
func TestHandlerTransactionDoesEverything(t *testing.T) {
	store, pool := newStore(t)
	_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
		return errors.Join(savepoints(t.Context(), tx), bulk(t.Context(), tx), largeObject(t.Context(), tx))
	})
	if err != nil {
		t.Fatal(err)
	}
	happened, err := testdb.Counts(t.Context(), pool, "effects")
	if err != nil || len(happened) != 3 || happened["kept"] != 1 || happened["copied"] != 2 || happened["batched"] != 1 {
		t.Errorf("effects %v, %v", happened, err)
	}
}

// What fails in a savepoint is undone with it, and after Commit, which refuses, a deferred Rollback means nothing.
func TestHandlerGoesOnAfterASavepoint(t *testing.T) {
	store, pool := newStore(t)
	_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
		defer tx.Rollback(t.Context())
		part, err := tx.Begin(t.Context())
		if err != nil {
			return err
		}
		if _, err := part.Exec(t.Context(), "INSERT INTO effects VALUES ($1)"); err == nil {
			return errors.New("a statement without its argument was carried out")
		}
		if err := errors.Join(part.Rollback(t.Context()), effect(t.Context(), tx, "kept")); err != nil {
			return err
		}
		_ = tx.Commit(t.Context())
		return nil
	})
	if happened, counted := testdb.Counts(t.Context(), pool, "effects"); err != nil || counted != nil || len(happened) != 1 || happened["kept"] != 1 {
		t.Errorf("error %v, effects %v, %v", err, happened, counted)
	}
}

func savepoints(ctx context.Context, tx pgx.Tx) error {
	undone, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(effect(ctx, undone, "undone"), undone.Rollback(ctx)); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, tx, func(kept pgx.Tx) error { return effect(ctx, kept, "kept") })
}

func bulk(ctx context.Context, tx pgx.Tx) error {
	rows := [][]any{{"copied"}, {"copied"}}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id"}, pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	if _, err := tx.Prepare(ctx, "batched", "INSERT INTO effects VALUES ($1)"); err != nil {
		return err
	}
	var b pgx.Batch
	b.Queue("batched", "batched")
	return tx.SendBatch(ctx, &b).Close()
}

func largeObject(ctx context.Context, tx pgx.Tx) error {
	objects := tx.LargeObjects()
	_, err := objects.Create(ctx, 0)
	return err
}

// A context that ends in the middle of a statement closes the connection; the attempt is rolled back
// and on record, and the store goes on.
func TestContextEndsDuringAStatement(t *testing.T) {
	store, pool := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := store.Within(ctx, request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
		go func() {
			defer cancel()
			untilAsleep(t, pool)
		}()
		_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, hookonce.ErrTraceLost) || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("error is %v", err)
	}
	mustBe(t, store, "evt_1", hookonce.StateFailed, "canceled")
	mustClaim(t, store, "evt_1", hookonce.Acquired)
}

// untilAsleep returns once a statement of this database sleeps. A request to cancel that overtakes its
// statement cancels nothing.
func untilAsleep(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for asleep := false; !asleep && t.Context().Err() == nil; {
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'PgSleep')`).Scan(&asleep)
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// The trace needs the only connection, which the attempt has just given back.
func TestOneConnectionIsEnough(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	failed := errors.New("declined")
	_, err := store.Within(t.Context(), request("evt_1"), func(pgx.Tx, hookonce.Claim) error { return failed })
	if !errors.Is(err, failed) || errors.Is(err, hookonce.ErrTraceLost) {
		t.Errorf("error is %v", err)
	}
	mustBe(t, store, "evt_1", hookonce.StateFailed, "declined")
}

// A failure that could not be recorded is reported as such, together with the handler's error.
func TestLostTrace(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "default_query_exec_mode=exec")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	failed := hookonce.Permanent(errors.New("declined"))
	_, err := store.Within(t.Context(), request("evt_1"), func(pgx.Tx, hookonce.Claim) error {
		p.Fail(testdb.IsWrite, false)
		return failed
	})
	if !errors.Is(err, failed) || !errors.Is(err, hookonce.ErrTraceLost) || !hookonce.IsPermanent(err) {
		t.Errorf("error is %v", err)
	}
	mustClaim(t, store, "evt_1", hookonce.Acquired)
}

// The trace that opens a claim which the handler committed says so, also when its answer was lost
// and it was left once more.
func TestTraceOfTheTornIsTold(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	pool := open(t, dsn, "default_query_exec_mode=exec")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	for key, persisted := range map[string]bool{"persisted": true, "not persisted": false} {
		_, err := store.Within(t.Context(), request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
			if _, err := tx.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
			p.Fail(testdb.IsWrite, persisted)
			return errDeclined
		})
		if !errors.Is(err, errDeclined) || !errors.Is(err, claimsql.ErrTorn) || errors.Is(err, hookonce.ErrTraceLost) {
			t.Errorf("%s: %v", key, err)
		}
		mustBe(t, store, key, hookonce.StateFailed, errDeclined.Error())
	}
}

// A server that is killed in the middle of a handler leaves neither claim nor effect, and what it
// had committed stays.
func TestServerIsKilled(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Fsync: true})
	pool := open(t, server.DSN(t), "")
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	mustClaim(t, store, "before", hookonce.Acquired)
	_, err := store.Within(t.Context(), request("during"), func(tx pgx.Tx, _ hookonce.Claim) error {
		return errors.Join(effect(t.Context(), tx, "during"), server.Stop(true))
	})
	if err == nil {
		t.Error("committed on a dead server")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
	mustClaim(t, store, "before", hookonce.Duplicate)
	if happened, err := testdb.Counts(t.Context(), pool, "effects"); err != nil || len(happened) != 0 {
		t.Errorf("effects %v, %v", happened, err)
	}
	mustClaim(t, store, "during", hookonce.Acquired)
}

// A handler that returns after its context has ended, and soon enough, is done with its connection:
// nobody cuts it under whoever has it then.
func TestConnectionIsNotCutAfterTheHandler(t *testing.T) {
	const patience = 50 * time.Millisecond
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool, pgstore.WithPatience(patience))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := store.Within(ctx, request("evt_1"), func(pgx.Tx, hookonce.Claim) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || errors.Is(err, hookonce.ErrTraceLost) {
		t.Errorf("error is %v", err)
	}
	_, err = store.Within(t.Context(), request("evt_2"), func(tx pgx.Tx, _ hookonce.Claim) error {
		_, err := tx.Exec(t.Context(), "SELECT pg_sleep($1)", 4*patience.Seconds())
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A handler that goes on after its context has ended, for ever perhaps, loses its connection, and so the key, also while
// the server is at work on a statement of it. Nothing of what it wrote stays, and nobody else's connection is cut.
func TestHandlerThatNeverReturnsLosesTheKey(t *testing.T) {
	waits := func(gate <-chan struct{}, _ pgx.Tx) { <-gate }
	asks := func(_ <-chan struct{}, tx pgx.Tx) { _, _ = tx.Exec(context.Background(), "SELECT pg_sleep(60)") }
	const asking = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
	for name, c := range map[string]struct {
		hang   func(gate <-chan struct{}, tx pgx.Tx)
		hung   string
		pooled bool
	}{
		"outside":                {waits, "SELECT 1", false},
		"in a statement":         {asks, asking, false},
		"in one, over PgBouncer": {asks, asking, true},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			pool := open(t, dsn, "")
			pgtest.Migrate(t, pool, "")
			mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
			first := pool
			if c.pooled {
				first = open(t, pgtest.PgBouncer(t, dsn), "default_query_exec_mode=exec")
			}
			store := pgstore.New(first, pgstore.WithPatience(time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			gate, wrote, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				_, err := store.Within(ctx, request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
					_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ('hung')")
					close(wrote)
					c.hang(gate, tx)
					return err
				})
				result <- err
			}()
			<-wrote
			await(t, pool, c.hung)
			cancel()
			mustClaim(t, pgstore.New(pool, pgstore.WithWait(20*time.Second)), "evt_1", hookonce.Acquired)
			close(gate)
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("the first was told %v", err)
			}
			mustBe(t, store, "evt_1", hookonce.StateDone, "")
			var hung int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM effects").Scan(&hung); err != nil || hung != 0 {
				t.Errorf("%d effects of it, %v", hung, err)
			}
			mustClaim(t, store, "evt_2", hookonce.Acquired)
		})
	}
}
