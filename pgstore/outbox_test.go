package pgstore_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgtest"
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
		taken, err := store.TakeEffects(t.Context(), []string{"mail"}, 10, time.Minute)
		if err != nil || len(taken) != 1 || taken[0].Key != "evt_1" {
			t.Fatalf("beside an open transaction the relay took %+v, %v", taken, err)
		}
		if err := store.CompleteEffect(t.Context(), taken[0]); err != nil {
			t.Fatal(err)
		}
	})
}

// What a relay asks every moment costs what it takes, not what waits. The server counts the rows that were
// read, on the only connection.
func TestTakingReadsWhatItTakes(t *testing.T) {
	pool := open(t, pgtest.DSN(t), "pool_max_conns=1")
	store := pgstore.New(pool)
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `INSERT INTO hookonce.effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
		SELECT 'billing', i::text, 'step', 'name ' || i % 5, '', now() - make_interval(secs => i), now(), now() FROM generate_series(1, 20000) AS i`)
	mustExec(t, pool, `ANALYZE hookonce.effects`)
	before := rowsRead(t, pool)
	const limit = 10
	taken, err := store.TakeEffects(t.Context(), []string{"name 1", "name 2", "nobody's"}, limit, time.Minute)
	if err != nil || len(taken) != limit {
		t.Fatalf("took %d effects, %v", len(taken), err)
	}
	if n := rowsRead(t, pool) - before; n > 10*limit {
		t.Errorf("read %d rows to take %d of 20000", n, limit)
	}
}

// rowsRead returns how many rows of the outbox this connection has read.
func rowsRead(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	mustExec(t, pool, "SELECT pg_stat_force_next_flush()")
	const query = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relid = 'hookonce.effects'::regclass"
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
