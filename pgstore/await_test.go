package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// never is an interval at which nobody looks before the test is over.
const never = 24 * time.Hour

// process opens a store on the database at dsn as another process would, and closes it at the end.
func process(t *testing.T, dsn string, opts ...pgstore.Option) (*pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool := open(t, dsn, "")
	s := pgstore.New(pool, opts...)
	pgtest.Migrate(t, pool, "")
	t.Cleanup(s.Close)
	return s, pool
}

func leased(t *testing.T, s *pgstore.Store, key string, d time.Duration) hookonce.Claim {
	t.Helper()
	req := request(key)
	req.Lease = d
	c, err := s.Claim(t.Context(), req)
	if err != nil || c.Verdict != hookonce.Acquired {
		t.Fatalf("claim %s: %v, %v", key, c.Verdict, err)
	}
	return c
}

// endings are the ways to end work in lease mode.
var endings = map[string]func(ctx context.Context, s *pgstore.Store, c hookonce.Claim) error{
	"Complete": func(ctx context.Context, s *pgstore.Store, c hookonce.Claim) error { return s.Complete(ctx, c) },
	"CompleteWith": func(ctx context.Context, s *pgstore.Store, c hookonce.Claim) error {
		return s.CompleteWith(ctx, c, hookonce.Response{Status: 200})
	},
	"Fail": func(ctx context.Context, s *pgstore.Store, c hookonce.Claim) error {
		return s.Fail(ctx, c, hookonce.Failure{Dead: true})
	},
}

// awaiting starts Await in a goroutine.
func awaiting(t *testing.T, s *pgstore.Store, ref hookonce.Ref) <-chan error {
	result := make(chan error, 1)
	go func() { result <- s.Await(t.Context(), ref) }()
	return result
}

func mustEnd(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("waited in vain")
	}
}

// listeners waits until somebody listens, and returns how many connections do.
func listeners(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %' AND state = 'idle'`
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && n == 0; time.Sleep(2 * time.Millisecond) {
		if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Nobody looks here, so whoever waits is told.
func TestAwaitIsTold(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			owner, pool := process(t, dsn, pgstore.WithNotify())
			waiter, _ := process(t, dsn, pgstore.WithNotify(), pgstore.WithLooks(never))
			c := leased(t, owner, "evt_1", never)
			var results []<-chan error
			for range 5 {
				results = append(results, awaiting(t, waiter, c.Ref))
			}
			if n := listeners(t, pool); n != 1 {
				t.Fatalf("%d connections listen", n)
			}
			if err := end(t.Context(), owner, c); err != nil {
				t.Fatal(err)
			}
			for _, result := range results {
				mustEnd(t, result)
			}
		})
	}
}

// A copy that came to another process waits until it is told, and gets the answer of the first.
func TestTwinInAnotherProcess(t *testing.T) {
	dsn := pgtest.DSN(t)
	first, pool := process(t, dsn, pgstore.WithNotify())
	second, _ := process(t, dsn, pgstore.WithNotify(), pgstore.WithLooks(never))
	running, gate, runs := make(chan struct{}), make(chan struct{}), new(atomic.Int64)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-gate
		fmt.Fprintf(w, "run %d", runs.Add(1))
	})
	answers := make(chan *httptest.ResponseRecorder)
	ask := func(s *pgstore.Store) {
		h := hookonce.IdempotentLease(s, "idempotency", next, hookonce.WithoutScope(), hookonce.WithWait(time.Minute), hookonce.WithTimeout(time.Minute))
		answers <- send(h, "k1", "ch_1")
	}
	go ask(first)
	<-running
	go ask(second)
	if n := listeners(t, pool); n != 1 {
		t.Errorf("%d connections listen", n)
	}
	close(gate)
	for range 2 {
		if w := <-answers; w.Code != 200 || w.Body.String() != "run 1" {
			t.Errorf("answered %d %s", w.Code, w.Body)
		}
	}
}

// What was not told is found when the connection breaks, at the latest.
func TestAwaitSurvivesItsConnection(t *testing.T) {
	dsn := pgtest.DSN(t)
	owner, pool := process(t, dsn) // tells nobody
	waiter, _ := process(t, dsn, pgstore.WithNotify(), pgstore.WithLooks(never))
	c := leased(t, owner, "evt_1", never)
	result := awaiting(t, waiter, c.Ref)
	listeners(t, pool)
	if err := owner.Complete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'`)
	mustEnd(t, result)
}

// Without anybody who tells, and behind a pooler, Await looks for itself.
func TestAwaitLooks(t *testing.T) {
	dsn := pgtest.DSN(t)
	owner, _ := process(t, dsn)
	deaf, _ := process(t, dsn)
	pooled := pgstore.New(open(t, pgtest.PgBouncer(t, dsn), "default_query_exec_mode=exec"), pgstore.WithNotify())
	t.Cleanup(pooled.Close)
	for name, waiter := range map[string]*pgstore.Store{"deaf": deaf, "pooled": pooled} {
		c := leased(t, owner, name, never)
		result := awaiting(t, waiter, c.Ref)
		if err := owner.Complete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		mustEnd(t, result)
	}
}

// Where the pool is told at each connection how to log in, as with passwords that expire, so is the ear.
func TestAwaitLogsInAsThePoolDoes(t *testing.T) {
	dsn := pgtest.DSN(t)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := config.ConnConfig.User
	config.ConnConfig.User = "nobody"
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.User = user; return nil }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan error, 1)
	go func() { listening <- pgstore.New(pool, pgstore.WithNotify()).ListenOnce(ctx) }()
	n := listeners(t, pool)
	cancel()
	if err := <-listening; n != 1 {
		t.Errorf("%d connections listen: %v", n, err)
	}
}

// Behind a pooler nobody listens, because somebody else would hear it.
func TestNobodyListensBehindPooler(t *testing.T) {
	pooled := pgstore.New(open(t, pgtest.PgBouncer(t, pgtest.DSN(t)), "default_query_exec_mode=exec"), pgstore.WithNotify())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := pooled.ListenOnce(ctx); !errors.Is(err, pgstore.ErrPooled) {
		t.Errorf("listening ended with %v", err)
	}
}

// There is nobody to wait for where nobody works: also not when the worker's lease ran out.
func TestAwaitReturnsAtOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, _ := process(t, dsn, pgstore.WithNotify(), pgstore.WithLooks(never))
	leased(t, s, "expired", -time.Second)
	mustClaim(t, s, "done", hookonce.Acquired)
	for name, end := range endings {
		if err := end(t.Context(), s, leased(t, s, name, never)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"never seen", "expired", "done", "Complete", "CompleteWith", "Fail"} {
		mustEnd(t, awaiting(t, s, request(key).Ref))
	}
	if err := s.Await(t.Context(), hookonce.Ref{}); !errors.Is(err, hookonce.ErrInvalidRef) {
		t.Errorf("error is %v", err)
	}
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	s, _ := process(t, pgtest.DSN(t), pgstore.WithNotify())
	c := leased(t, s, "evt_1", 0)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Await(ctx, c.Ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

// Only the end of work in lease mode is told, and only by stores that are to: NOTIFY has transactions wait
// for each other. Notifications arrive in the order of the commits.
func TestOnlyEndsAreTold(t *testing.T) {
	dsn := pgtest.DSN(t)
	loud, pool := process(t, dsn, pgstore.WithNotify())
	quiet, _ := process(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "LISTEN hookonce_claims"); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, loud, "in a transaction", hookonce.Acquired)
	extended := leased(t, loud, "extended", time.Minute)
	if _, err := loud.Extend(t.Context(), extended, time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, end := range endings {
		if err := end(t.Context(), quiet, leased(t, quiet, "quiet "+name, never)); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, pool, "NOTIFY hookonce_claims, 'last'")
	if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Payload != "last" {
		t.Fatalf("heard %+v, %v", n, err)
	}
	for name, end := range endings {
		c := leased(t, loud, name, never)
		for range 2 { // the second changes nothing
			if err := end(t.Context(), loud, c); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Payload != "billing\n"+name {
			t.Fatalf("heard %+v, %v", n, err)
		}
	}
}
