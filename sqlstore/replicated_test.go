package sqlstore_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// As with pgstore, no copy is told that work is done which is in the primary alone, before the standby has it that commits
// wait for.
func TestDoneIsWhatTheStandbyHas(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	db, err := sql.Open("pgx", primary.DSN(t))
	must(t, err)
	defer db.Close()
	_, err = schema.Migrate(t.Context(), db, schema.Postgres, "")
	must(t, err)
	s := sqlstore.New(db, sqlstore.Postgres)
	standby := primary.Standby(t)
	must(t, standby.Deafen())
	ways := map[string]func(context.Context) (hookonce.Claim, error){
		"Within": func(ctx context.Context) (hookonce.Claim, error) {
			return s.Within(ctx, request, func(*sql.Tx, hookonce.Claim) error { return nil })
		},
		"Claim":  func(ctx context.Context) (hookonce.Claim, error) { return s.Claim(ctx, request) },
		"Lookup": func(ctx context.Context) (hookonce.Claim, error) { return s.Lookup(ctx, request.Ref) },
	}
	// The store lets no caller end a commit, so that it is the server's client that gives up.
	first := make(chan error, 1)
	go func() { _, err := ways["Within"](t.Context()); first <- err }()
	seen := func() bool {
		return queryRow[int](t, db, `SELECT count(*) FROM hookonce.claims WHERE state = 'done'`) == 1
	}
	for deadline := time.Now().Add(time.Minute); !seen(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the claim is nowhere")
		}
		_, err := db.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
		must(t, err)
	}
	if err := <-first; err == nil {
		t.Fatal("a commit was told to have succeeded, whose wait was ended")
	}
	var told sync.WaitGroup
	for name, way := range ways {
		told.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if c, err := way(ctx); err == nil {
				t.Errorf("%s: a copy was told %v, and no standby has the work", name, c.Verdict)
			}
		})
	}
	told.Wait()
	must(t, standby.Follow(primary))
	for name, way := range ways {
		if c, err := way(t.Context()); err != nil || c.State != hookonce.StateDone {
			t.Errorf("%s, once the standby follows: %v, %v", name, c.State, err)
		}
	}
}
