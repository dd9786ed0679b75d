package claimstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onEveryStore runs a test on each kind of database. The clock of the store is the test's.
func onEveryStore(t *testing.T, test func(t *testing.T, open func(Options) *Store)) {
	t.Run("sqlite", func(t *testing.T) {
		file := "file:" + filepath.Join(t.TempDir(), "hookonce.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
		test(t, func(o Options) *Store {
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := schema.Migrate(t.Context(), db, schema.SQLite, ""); err != nil {
				t.Fatal(err)
			}
			return opened(t)(OpenSQLite(db, o))
		})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn, pool := postgres(t)
		pgtest.Migrate(t, pool, "front")
		test(t, func(o Options) *Store { return opened(t)(OpenPostgres(t.Context(), dsn, "front", o)) })
	})
}

// postgres returns a database of the test's own, and a pool of it until the test ends.
func postgres(t *testing.T) (dsn string, pool *pgxpool.Pool) {
	t.Helper()
	dsn = pgtest.DSN(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return dsn, pool
}

func opened(t *testing.T) func(*Store, error) *Store {
	return func(s *Store, err error) *Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
}

// work brings the claim under source and key into the state.
func work(t *testing.T, s *Store, source, key string, state hookonce.State) hookonce.Ref {
	t.Helper()
	ref := hookonce.Ref{Source: source, Key: key}
	c, err := s.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute})
	switch {
	case err != nil:
	case state == hookonce.StateDone:
		err = s.CompleteWith(t.Context(), c, hookonce.Response{Status: 200, Body: []byte(key)})
	case state != hookonce.StateProcessing:
		err = s.Fail(t.Context(), c, hookonce.Failure{Err: errors.New("answered 500"), Dead: state == hookonce.StateDead})
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// What is old and nobody works on is forgotten with its answer, of this source alone.
func TestForget(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(Options) *Store) {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		s := open(Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
		forgotten := []hookonce.Ref{
			work(t, s, "gateway:a", "done", hookonce.StateDone), work(t, s, "gateway:a", "failed", hookonce.StateFailed), work(t, s, "gateway:a", "dead", hookonce.StateDead),
		}
		kept := []hookonce.Ref{
			work(t, s, "gateway:a", "processing", hookonce.StateProcessing), work(t, s, "gateway:b", "done", hookonce.StateDone), work(t, s, "a", "done", hookonce.StateDone),
		}
		now = now.Add(time.Hour)
		kept = append(kept, work(t, s, "gateway:a", "young", hookonce.StateDone))
		if err := s.Forget(t.Context(), "gateway:a", now.Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, ref := range forgotten {
			if c, err := s.Lookup(t.Context(), ref); !errors.Is(err, hookonce.ErrNotFound) {
				t.Errorf("%s is still there: %+v, %v", ref, c, err)
			}
			if _, err := s.Response(t.Context(), ref); !errors.Is(err, hookonce.ErrNotFound) {
				t.Errorf("the answer to %s is still there: %v", ref, err)
			}
		}
		for _, ref := range kept {
			c, err := s.Lookup(t.Context(), ref)
			if err != nil {
				t.Errorf("%s is gone: %v", ref, err)
			}
			if _, err := s.Response(t.Context(), ref); (err == nil) != (c.State == hookonce.StateDone) {
				t.Errorf("%s is %s, and its answer %v", ref, c.State, err)
			}
		}
	})
}

// What a process left that died at work is not kept for ever: it has failed, still bound to its request, and is forgotten when
// that is old. Work that goes on stays, and so does that of others.
func TestForgetWhatTheDeadLeft(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(Options) *Store) {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		o := Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler), Standing: func() error { return nil }}
		s := open(o)
		claim := func(source, key string, lease time.Duration) hookonce.Ref {
			t.Helper()
			req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: source, Key: key}, Digest: []byte("first"), Lease: lease, Pin: true}
			if c, err := s.Claim(t.Context(), req); err != nil || c.Verdict != hookonce.Acquired {
				t.Fatalf("claimed %+v, %v", c, err)
			}
			return req.Ref
		}
		want := func(ref hookonce.Ref, state hookonce.State) {
			t.Helper()
			c, err := s.Lookup(t.Context(), ref)
			if state == "" && errors.Is(err, hookonce.ErrNotFound) {
				return
			}
			if err != nil || c.State != state || c.Pinned != 1 {
				t.Errorf("%s is %+v, %v; want it %q", ref, c, err, state)
			}
		}
		left := claim("gateway:a", "left", time.Minute)
		atWork := claim("gateway:a", "at work", 3*time.Hour)
		others := claim("a", "left", time.Minute)
		now = now.Add(time.Hour)
		for _, state := range []hookonce.State{hookonce.StateFailed, ""} {
			if err := s.Forget(t.Context(), "gateway:a", now.Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			want(left, state)
			want(atWork, hookonce.StateProcessing)
			want(others, hookonce.StateProcessing)
			now = now.Add(time.Hour)
		}
		young := claim("gateway:a", "young", time.Second)
		now = now.Add(30 * time.Second)
		if err := s.Forget(t.Context(), "gateway:a", now.Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		want(young, hookonce.StateProcessing)
	})
}

// More than one step's worth, by two processes at once.
func TestForgetMany(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(Options) *Store) {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		o := Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
		stores := []*Store{open(o), open(o)}
		for i := range 2*purgeStep + 1 {
			work(t, stores[0], "gateway:a", fmt.Sprint(i), hookonce.StateDone)
		}
		now = now.Add(time.Minute)
		ended := make(chan error)
		for _, s := range stores {
			go func() { ended <- s.Forget(context.WithoutCancel(t.Context()), "gateway:a", now) }()
		}
		for range stores {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		all := hookonce.PurgeRequest{Before: now, Limit: 1000, Dry: true}
		if n, err := stores[0].Purge(t.Context(), all); err != nil || n != 0 {
			t.Errorf("%d claims are left, %v", n, err)
		}
	})
}

// purged is a store that tells what it is asked to delete.
type purged struct {
	hookonce.ResponseStore
	asked chan hookonce.PurgeRequest
}

func (p purged) Purge(_ context.Context, r hookonce.PurgeRequest) (int, error) {
	p.asked <- r
	return 0, nil
}

// What is old is forgotten again and again, by the clock of the store: what each source has that is older than was said last.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := purged{asked: make(chan hookonce.PurgeRequest, 100)}
		now := func() time.Time { return time.Now().Add(-24 * time.Hour) }
		s := start(&Store{ResponseStore: p, close: func() {}, opt: Options{Remember: map[string]time.Duration{"gateway:a": time.Hour}, Now: now, Logger: slog.New(slog.DiscardHandler)}})
		defer s.Close()
		for round, age := range []time.Duration{time.Hour, time.Hour, 3 * time.Hour} {
			synctest.Wait()
			if n := len(p.asked); n != 2 {
				t.Fatalf("in round %d it is asked to delete %d times", round, n)
			}
			for _, kind := range []hookonce.PurgeKind{hookonce.PurgeEvents, hookonce.PurgeFailed} {
				if r := <-p.asked; r.Kind != kind || r.Source != "gateway:a" || !r.Before.Equal(now().Add(-age)) {
					t.Errorf("in round %d it is asked for %+v, want %s that are older than %v at %v", round, r, kind, age, now())
				}
			}
			if round == 1 {
				s.Remember(map[string]time.Duration{"gateway:a": 3 * time.Hour})
			}
			time.Sleep(purgeInterval)
		}
	})
}

// What was stored where no restart will find it is an error, whatever the store says of it; and nothing is deleted there.
func TestStanding(t *testing.T) {
	ctx, gone := t.Context(), errors.New("the file was taken away")
	looks := 0 // that find the file where it was
	s := standing{memstore.New(), func() error {
		if looks--; looks < 0 {
			return gone
		}
		return nil
	}}
	ref := func(key string) hookonce.Ref { return hookonce.Ref{Source: "gateway:a", Key: key} }
	claim := func(key string, well int) (hookonce.Claim, error) {
		looks = well
		return s.Claim(ctx, hookonce.ClaimRequest{Ref: ref(key), Lease: time.Minute})
	}
	if _, err := claim("before", 0); !errors.Is(err, gone) {
		t.Errorf("a claim in a file that is gone: %v", err)
	}
	if _, err := s.Lookup(ctx, ref("before")); !errors.Is(err, hookonce.ErrNotFound) {
		t.Errorf("it is stored: %v", err)
	}
	if _, err := claim("meanwhile", 1); !errors.Is(err, gone) {
		t.Errorf("a claim in a file that goes meanwhile: %v", err)
	}
	for name, finish := range map[string]func(hookonce.Claim) error{
		"complete": func(c hookonce.Claim) error { return s.Complete(ctx, c) },
		"answer":   func(c hookonce.Claim) error { return s.CompleteWith(ctx, c, hookonce.Response{Status: 200}) },
		"fail":     func(c hookonce.Claim) error { return s.Fail(ctx, c, hookonce.Failure{Err: errors.New("500")}) },
		"extend":   func(c hookonce.Claim) error { _, err := s.Extend(ctx, c, time.Minute); return err },
		"purge": func(hookonce.Claim) error {
			n, err := s.Purge(ctx, hookonce.PurgeRequest{Kind: hookonce.PurgeEvents, Before: time.Now(), Limit: purgeStep})
			if n > 0 {
				t.Errorf("%d are deleted", n)
			}
			return err
		},
	} {
		c, err := claim(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := finish(c); !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A database that another writer has locked is a fault of this side: a new key is not busy, and one that is busy stays so.
func TestLockedDatabaseIsNotBusy(t *testing.T) {
	t.Parallel()
	file := "file:" + filepath.Join(t.TempDir(), "hookonce.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1)&_txlock=immediate"
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, ""); err != nil {
		t.Fatal(err)
	}
	s := opened(t)(OpenSQLite(db, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}))
	held := work(t, s, "gateway:a", "held", hookonce.StateProcessing)
	writer, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(ref hookonce.Ref) (hookonce.Claim, error) {
		return s.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute})
	}
	fresh := hookonce.Ref{Source: "gateway:a", Key: "new"}
	if c, err := claim(fresh); !errors.Is(err, errLocked) || errors.Is(err, hookonce.ErrBusy) || c.Verdict != 0 {
		t.Errorf("a new key while the database is locked: %v, %v", c.Verdict, err)
	}
	if c, err := claim(held); err != nil || c.Verdict != hookonce.Busy {
		t.Errorf("a key that is held: %v, %v", c.Verdict, err)
	}
	if err := writer.Rollback(); err != nil {
		t.Fatal(err)
	}
	if c, err := claim(fresh); err != nil || c.Verdict != hookonce.Acquired {
		t.Errorf("when the other writer is done: %v, %v", c.Verdict, err)
	}
}

// A process that waits for another one's work is told when it ends.
func TestAwait(t *testing.T) {
	dsn, pool := postgres(t)
	pgtest.Migrate(t, pool, "")
	o := Options{Now: time.Now, Awaited: true, Logger: slog.New(slog.DiscardHandler)}
	one, two := opened(t)(OpenPostgres(t.Context(), dsn, "", o)), opened(t)(OpenPostgres(t.Context(), dsn, "", o))
	ref := hookonce.Ref{Source: "gateway:a", Key: "k1"}
	c, err := one.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- two.Await(ctx, ref) }()
	if err := one.CompleteWith(t.Context(), c, hookonce.Response{Status: 200}); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
}

// What is answered is on disk, even where the database's own setting is to be quicker than that.
func TestCommitsAreDurable(t *testing.T) {
	dsn, pool := postgres(t)
	if _, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	s := opened(t)(OpenPostgres(t.Context(), dsn, "", Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}))
	var setting string
	if err := s.pool.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&setting); err != nil || setting != "on" {
		t.Errorf("synchronous_commit is %q, %v", setting, err)
	}
}

// An operator who sees commits wait for a standby that is away cancels them. PostgreSQL says that they succeeded, with a warning;
// nobody is told so, because with the primary the claim or the answer would be lost, and the service asked again. That holds where
// the role is set to hear no warnings.
func TestACancelledWaitIsNoCommit(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	pgtest.Migrate(t, pool, "")
	if _, err := pool.Exec(t.Context(), `ALTER ROLE CURRENT_USER SET client_min_messages = error`); err != nil {
		t.Fatal(err)
	}
	s := opened(t)(OpenPostgres(t.Context(), dsn, "", Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}))
	request := func(key string) hookonce.ClaimRequest {
		return hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "gateway:a", Key: key}, Lease: time.Hour}
	}
	held := map[string]hookonce.Claim{}
	for _, key := range []string{"completed", "answered", "failed", "extended"} {
		if held[key], err = s.Claim(t.Context(), request(key)); err != nil {
			t.Fatal(err)
		}
	}
	done := work(t, s, "gateway:a", "done", hookonce.StateDone)
	if err := standby.Deafen(); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(ctx context.Context) error{
		"a key is claimed": func(ctx context.Context) error {
			c, err := s.Claim(ctx, request("new"))
			if err == nil && c.Verdict != hookonce.Busy { // until the lease is over: nobody has the claim that was not confirmed
				err = fmt.Errorf("the verdict is %v", c.Verdict)
			}
			return err
		},
		"the work was done": func(ctx context.Context) error { _, err := s.Claim(ctx, request(done.Key)); return err },
		"it is on record":   func(ctx context.Context) error { _, err := s.Lookup(ctx, done); return err },
		"the work is done":  func(ctx context.Context) error { return s.Complete(ctx, held["completed"]) },
		"the answer is stored": func(ctx context.Context) error {
			return s.CompleteWith(ctx, held["answered"], hookonce.Response{Status: 200})
		},
		"the lease goes on": func(ctx context.Context) error { _, err := s.Extend(ctx, held["extended"], time.Hour); return err },
		"the work has failed": func(ctx context.Context) error {
			return s.Fail(ctx, held["failed"], hookonce.Failure{Err: errors.New("500")})
		},
	}
	for what, way := range ways {
		told := make(chan error, 1)
		go func() { told <- way(t.Context()) }()
		for deadline := time.Now().Add(time.Minute); len(told) == 0; time.Sleep(10 * time.Millisecond) {
			const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
			var n int
			if err := pool.QueryRow(t.Context(), cancel).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no commit waits", what)
			}
		}
		if err := <-told; !errors.Is(err, pgstandby.ErrCancelled) {
			t.Errorf("it is told that %s, and no standby has it: %v", what, err)
		}
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	for what, way := range ways {
		if err := way(t.Context()); err != nil {
			t.Errorf("%s, once the standby follows: %v", what, err)
		}
	}
}

// A connection to a server that takes no writes any more, because another one leads, is left: the next claim may be taken there.
func TestReadOnlyConnectionsAreLeft(t *testing.T) {
	dsn, pool := postgres(t)
	pgtest.Migrate(t, pool, "")
	s := opened(t)(OpenPostgres(t.Context(), dsn+"&pool_max_conns=1", "", Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}))
	if _, err := s.pool.Exec(t.Context(), `SELECT set_config('default_transaction_read_only', 'on', false)`); err != nil {
		t.Fatal(err)
	}
	request := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "gateway:a", Key: "k1"}, Lease: time.Minute}
	if _, err := s.Claim(t.Context(), request); err == nil {
		t.Fatal("a connection that is read-only took a claim")
	}
	if c, err := s.Claim(t.Context(), request); err != nil || c.Verdict != hookonce.Acquired {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}
