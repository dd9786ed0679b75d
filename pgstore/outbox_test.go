package pgstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func asks(key, name string) hookonce.Effect {
	return hookonce.Effect{Ref: request(key).Ref, Name: name}
}

// A relay goes on with what others committed while an application keeps its transaction open, whatever that
// has stored.
func TestARelayWaitsForNoTransaction(t *testing.T) {
	store, pool := newStore(t)
	enqueue := func(key string, then func()) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			defer then()
			return store.Enqueue(t.Context(), tx, asks(key, "mail"))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	enqueue("evt_1", func() {})
	enqueue("evt_2", func() {
		taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 10, Lease: time.Minute})
		if err != nil || len(taken) != 1 || taken[0].Key != "evt_1" {
			t.Fatalf("beside an open transaction the relay took %+v, %v", taken, err)
		}
		if err := store.CompleteEffect(t.Context(), taken[0]); err != nil {
			t.Fatal(err)
		}
	})
}

// A relay passes over what another one is taking at the same moment, for the first time or because
// its lease ran out. Here a lock stands for the other one's statement; the deadline only ends a
// test that would hang.
func TestARelayWaitsForNoOther(t *testing.T) {
	store, pool := newStore(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, key := range []string{"evt_1", "evt_2"} {
			if err := store.Enqueue(t.Context(), tx, asks(key, "mail")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	takes := func(what string, want ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		taken, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail"}, Limit: 10, Suspects: 10, Lease: time.Nanosecond}) // which is over at once
		var keys []string
		for _, e := range taken {
			keys = append(keys, e.Key)
		}
		slices.Sort(keys)
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("%s a relay took %v, %v; want %v", what, keys, err, want)
		}
	}
	for _, round := range []string{"new", "suspects"} {
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SELECT 1 FROM hookonce.effects WHERE key = 'evt_1' FOR UPDATE")
			takes("beside another one, of what is "+round+",", "evt_2")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		takes("after it", "evt_1", "evt_2")
	}
}

// longOutbox returns a store whose outbox is long, over a single connection. Nearly all of its effects are in
// the given state.
func longOutbox(t *testing.T, state hookonce.State) (*pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, `INSERT INTO hookonce.effects (source, key, step, name, payload, state, due_at, enqueued_at, updated_at)
		SELECT 'billing', i::text, 'step', 'name ' || i % 5, '', $1, CASE WHEN $1 = 'pending' THEN now() - make_interval(secs => i) END, now(), now()
		FROM generate_series(1, 20000) AS i`, string(state))
	for _, few := range []string{"pending", "processing", "failed", "dead"} {
		mustExec(t, pool, `INSERT INTO hookonce.effects (source, key, step, name, payload, state, due_at, enqueued_at, updated_at)
			SELECT 'shop', i::text, $1, 'few', '', $1, CASE WHEN $1 <> 'dead' THEN now() END, now(), now() FROM generate_series(1, 3) AS i`, few)
	}
	mustExec(t, pool, `ANALYZE hookonce.effects`)
	return store, pool
}

// What a relay asks every moment costs what it takes, not what waits.
func TestTakingReadsWhatItTakes(t *testing.T) {
	store, pool := longOutbox(t, hookonce.StatePending)
	before := rowsRead(t, pool, "effects")
	const limit = 10
	taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"name 1", "name 2", "nobody's"}, Limit: limit, Lease: time.Minute})
	if err != nil || len(taken) != limit {
		t.Fatalf("took %d effects, %v", len(taken), err)
	}
	if n := rowsRead(t, pool, "effects") - before; n > 10*limit {
		t.Errorf("read %d rows to take %d of 20000", n, limit)
	}
}

// What people ask for while something is wrong does not cost what is done.
func TestListingReadsNotWhatIsDone(t *testing.T) {
	store, pool := longOutbox(t, hookonce.StateDone)
	for _, state := range []hookonce.State{hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead} {
		before := rowsRead(t, pool, "effects")
		for range 10 { // long enough for the server to settle on a plan
			if found, err := store.Effects(t.Context(), state, 0, 100); err != nil || len(found) != 3 {
				t.Fatalf("%d effects are %s, %v", len(found), state, err)
			}
		}
		if n := rowsRead(t, pool, "effects") - before; n > 10*100 {
			t.Errorf("read %d rows to find 3 effects that are %s, ten times", n, state)
		}
	}
	if found, err := store.Effects(t.Context(), "no such state", 0, 100); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

// rowsRead returns how many rows of the table were read, as the server counts them for the connection.
func rowsRead(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	mustExec(t, pool, "SELECT pg_stat_force_next_flush()")
	const query = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE schemaname = 'hookonce' AND relname = $1"
	if err := pool.QueryRow(t.Context(), query, table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A step of a purge reads as many responses as it deletes claims, not all of them.
func TestPurgingReadsTheResponsesThatGo(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, `INSERT INTO hookonce.claims (source, key, state, token, first_seen, updated_at)
		SELECT 'billing', i::text, 'done', 1, now(), now() FROM generate_series(1, 20000) AS i`)
	mustExec(t, pool, `INSERT INTO hookonce.responses (source, key, token, status, header, body)
		SELECT source, key, token, 200, '', '' FROM hookonce.claims`)
	mustExec(t, pool, "ANALYZE hookonce.claims, hookonce.responses")
	before := rowsRead(t, pool, "responses")
	const limit = 500
	if n, err := store.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: limit}); err != nil || n != limit {
		t.Fatalf("purged %d claims, %v", n, err)
	}
	if n := rowsRead(t, pool, "responses") - before; n > 2*limit {
		t.Errorf("read %d responses to delete %d of 20000", n, limit)
	}
}
