package pgstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// benchPool returns a pool over a server that makes commits durable on the disk.
func benchPool(b *testing.B) *pgxpool.Pool {
	b.Helper()
	pool := open(b, pgtest.Start(b, pgtest.Options{Fsync: true}).DSN(b), "pool_max_conns=16")
	pgtest.Migrate(b, pool, "")
	mustExec(b, pool, "CREATE TABLE effects (id text NOT NULL)")
	mustExec(b, pool, "CREATE TABLE seen (source text, key text, seen_at timestamptz NOT NULL, PRIMARY KEY (source, key))")
	return pool
}

func effect(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", key)
	return err
}

// byHand is what a careful engineer writes without the library: the same promise for a first copy,
// without a bounded wait, a trace of failures, the event's type or a check of its content.
func byHand(ctx context.Context, pool *pgxpool.Pool, source, key string) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	tag, err := tx.Exec(ctx, "INSERT INTO seen (source, key, seen_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", source, key, time.Now())
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if err := effect(ctx, tx, key); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// BenchmarkWithin compares a handler in the store's transaction with the transaction written by
// hand, on fresh keys, in alternating rounds over one server. Compare the two numbers of one run.
func BenchmarkWithin(b *testing.B) {
	pool := benchPool(b)
	store, digest := pgstore.New(pool), []byte("0123456789abcdef")
	var next atomic.Int64
	kinds := []struct {
		name string
		run  func(ctx context.Context, key string) error
	}{
		{"by hand", func(ctx context.Context, key string) error { return byHand(ctx, pool, "billing", key) }},
		{"store", func(ctx context.Context, key string) error {
			req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}, Type: "invoice.paid", Digest: digest}
			_, err := store.Within(ctx, req, func(tx pgx.Tx, _ hookonce.Claim) error { return effect(ctx, tx, key) })
			return err
		}},
	}
	for round := range 7 {
		for _, k := range kinds {
			b.Run(fmt.Sprintf("%s/round %d", k.name, round+1), func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := k.run(b.Context(), "evt_"+strconv.FormatInt(next.Add(1), 10)); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}
