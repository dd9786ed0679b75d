package pgstore_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A commit whose wait for the standby was given up is in the primary's tables, and everybody sees it, as after a crash of the
// primary. With the primary the work would be undone, so that no copy is told that it is done before the standby has it.
//
// A pool may have the server cancel what a context that ends waits for, in place of closing the connection: then a commit is told
// to have succeeded that has not waited.
func TestDoneIsWhatTheStandbyHas(t *testing.T) {
	testskip.Long(t)
	for name, watch := range map[string]func(*pgconn.PgConn) ctxwatch.Handler{
		"closes": nil,
		"cancels": func(c *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 5 * time.Second}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doneIsWhatTheStandbyHas(t, watch)
		})
	}
}

func doneIsWhatTheStandbyHas(t *testing.T, watch func(*pgconn.PgConn) ctxwatch.Handler) {
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if watch != nil {
		cfg.ConnConfig.BuildContextWatcherHandler = watch
	}
	pool := testdb.Pool(t, cfg)
	pgtest.Migrate(t, pool, "")
	s := pgstore.New(pool, pgstore.WithWait(time.Minute))
	settled := outcomes(t, s, pool)
	standby := primary.Standby(t)
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	req := request("a")
	nothing := func(pgx.Tx, hookonce.Claim) error { return nil }
	ways := map[string]func(context.Context) (hookonce.Claim, error){
		"Within": func(ctx context.Context) (hookonce.Claim, error) { return s.Within(ctx, req, nothing) },
		"Batches": func(ctx context.Context) (hookonce.Claim, error) {
			return s.Batches().Within(ctx, req, func(*pgstore.Batch, hookonce.Claim) error { return nil })
		},
		"Claim":  func(ctx context.Context) (hookonce.Claim, error) { return s.Claim(ctx, req) },
		"Lookup": func(ctx context.Context) (hookonce.Claim, error) { return s.Lookup(ctx, req.Ref) },
		"a transaction of the caller's": func(ctx context.Context) (c hookonce.Claim, err error) {
			err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				c, err = s.ClaimTx(ctx, tx, req)
				return err
			})
			return c, cmp.Or(err, ctx.Err()) // see ClaimTx
		},
		"claim()": function(pool, `SELECT hookonce.claim($1, $2)`, req.Ref),
		"lease()": function(pool, `SELECT hookonce.lease($1, $2, 60)`, req.Ref),
	}
	within := func(d time.Duration, way func(context.Context) (hookonce.Claim, error)) (hookonce.Claim, error) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return way(ctx)
	}
	var told sync.WaitGroup
	told.Go(func() {
		for range 10 { // it may end before the commit, where the machine is busy
			if c, err := within(2*time.Second, ways["Within"]); err == nil {
				t.Errorf("%v while commits wait for a standby that hears nothing", c.Verdict)
				return
			}
			if count(t, pool, `SELECT count(*) FROM hookonce.claims WHERE state = 'done'`) > 0 {
				return
			}
		}
	})
	await(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	told.Go(func() { // which waits for the first
		if c, err := within(4*time.Second, ways["Within"]); err == nil {
			t.Errorf("a copy that waited was told %v, and no standby has the work", c.Verdict)
		}
	})
	await(t, pool, `SELECT count(*) FROM hookonce.claims WHERE state = 'done'`)
	for name, way := range ways {
		told.Go(func() {
			if c, err := within(time.Second, way); err == nil {
				t.Errorf("%s: a copy was told %v, and no standby has the work", name, c.Verdict)
			}
		})
	}
	told.Go(func() { // what a batch claims is decided when it is sent: nobody waits for that nothing is on record
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _ = s.Batches().Within(ctx, request("order"), func(b *pgstore.Batch, _ hookonce.Claim) error {
			if _, err := s.Batches().ClaimTx(ctx, b, request("its first line")); err != nil {
				t.Errorf("a claim in a batch: %v", err)
			}
			return errors.New("that was all")
		})
	})
	told.Wait()
	for name, way := range settled {
		told.Go(func() {
			for recorded, once, tries := false, false, 0; !once && tries < 60; tries++ {
				once = recorded // and once more, when it is in the tables
				if _, err := within(time.Second, way); err == nil {
					t.Errorf("%s: told that it is recorded (it was before: %v), and no standby has it", name, once)
					return
				}
				recorded = recorded || count(t, pool, `SELECT count(*) FROM hookonce.claims WHERE state = 'processing' AND key = $1`, name) == 0
			}
		})
	}
	told.Wait()
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	for name, way := range ways {
		if c, err := within(time.Minute, way); err != nil || c.State != hookonce.StateDone {
			t.Errorf("%s, once the standby follows: %v, %v", name, c.State, err)
		}
	}
	for name, way := range settled {
		if _, err := within(time.Minute, way); err != nil {
			t.Errorf("%s, once the standby follows: %v", name, err)
		}
	}
	if err := primary.Quorum(standby); err != nil { // so that a standby has the setting too, as under Patroni
		t.Fatal(err)
	}
	copied := open(t, standby.Alone(dsn), "")
	await(t, copied, `SELECT count(*) FROM hookonce.claims WHERE key = 'a' AND state = 'done' AND current_setting('synchronous_standby_names') <> ''`)
	if c, err := pgstore.New(copied).Lookup(t.Context(), req.Ref); err != nil || c.State != hookonce.StateDone {
		t.Errorf("on the standby: %v, %v", c.State, err)
	}
}

// function returns what a program gets to know that asks one of the SQL functions about a claim that is done. Where its driver
// cancels what waits, it has to look at its context by itself.
func function(pool *pgxpool.Pool, sql string, ref hookonce.Ref, more ...any) func(context.Context) (hookonce.Claim, error) {
	return func(ctx context.Context) (hookonce.Claim, error) {
		_, err := pool.Exec(ctx, sql, append([]any{ref.Source, ref.Key}, more...)...)
		return hookonce.Claim{State: hookonce.StateDone}, cmp.Or(err, ctx.Err())
	}
}

// outcomes makes claims and returns what records how each went.
func outcomes(t *testing.T, s *pgstore.Store, pool *pgxpool.Pool) map[string]func(context.Context) (hookonce.Claim, error) {
	ways := map[string]func(context.Context, hookonce.Claim) error{
		"Complete": s.Complete,
		"CompleteWith": func(ctx context.Context, c hookonce.Claim) error {
			return s.CompleteWith(ctx, c, hookonce.Response{Status: 200})
		},
		"Fail": func(ctx context.Context, c hookonce.Claim) error {
			return s.Fail(ctx, c, hookonce.Failure{Err: errors.New("declined"), Dead: true})
		},
		"Fail and forget": func(ctx context.Context, c hookonce.Claim) error {
			return s.Fail(ctx, c, hookonce.Failure{Err: errors.New("refused"), Forget: true})
		},
		"complete()": func(ctx context.Context, c hookonce.Claim) error {
			_, err := function(pool, `SELECT hookonce.complete($1, $2, $3)`, c.Ref, c.Token)(ctx)
			return err
		},
		"fail() and forget": func(ctx context.Context, c hookonce.Claim) error {
			_, err := function(pool, `SELECT hookonce.fail($1, $2, $3, 'refused', false, false, $4)`, c.Ref, c.Token, c.FirstSeen)(ctx)
			return err
		},
		"fail()": func(ctx context.Context, c hookonce.Claim) error {
			_, err := function(pool, `SELECT hookonce.fail($1, $2, $3, 'declined', true)`, c.Ref, c.Token)(ctx)
			return err
		},
	}
	settled := map[string]func(context.Context) (hookonce.Claim, error){}
	for name, way := range ways {
		c, err := s.Claim(t.Context(), request(name))
		if err != nil {
			t.Fatal(err)
		}
		settled[name] = func(ctx context.Context) (hookonce.Claim, error) { return c, way(ctx, c) }
	}
	return settled
}

// await returns when a query counts something.
func await(t *testing.T, pool *pgxpool.Pool, query string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if count(t, pool, query) > 0 {
			return
		}
	}
	t.Fatalf("waited a minute: %s", query)
}

func count(t *testing.T, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}
