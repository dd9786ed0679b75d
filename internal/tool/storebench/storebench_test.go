package storebench

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the driver

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// workers is how many handle events at once, and connections how many the store may have.
const workers, connections = 32, 16

// BenchmarkSQLite has write-ahead logging and syncs every commit.
func BenchmarkSQLite(b *testing.B) {
	file := "file:" + filepath.Join(b.TempDir(), "app.db") +
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)"
	benchSQL(b, open(b, "sqlite", file), sqlstore.SQLite, `INSERT INTO effects VALUES (?)`)
}

// BenchmarkMariaDB syncs every commit.
func BenchmarkMariaDB(b *testing.B) {
	benchSQL(b, open(b, "mysql", mariadbtest.Durable(b)+"?interpolateParams=true"), sqlstore.MySQL, `INSERT INTO effects VALUES (?)`)
}

func open(b *testing.B, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	must(b, err)
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

func benchSQL(b *testing.B, db *sql.DB, d sqlstore.Dialect, effect string) {
	store := sqlstore.New(db, d, sqlstore.WithWait(time.Minute))
	_, err := schema.Migrate(b.Context(), db, d, schema.DefaultName)
	must(b, err)
	_, err = db.ExecContext(b.Context(), `CREATE TABLE effects (id VARCHAR(255) NOT NULL)`)
	must(b, err)
	bench(b, store, func(ctx context.Context, tx *sql.Tx, key string) error {
		_, err := tx.ExecContext(ctx, effect, key)
		return err
	})
}

// postgres opens a store over a server that syncs every commit.
func postgres(b *testing.B) *pgstore.Store {
	dsn := pgtest.Start(b, pgtest.Options{Fsync: true}).DSN(b)
	pool, err := pgxpool.New(b.Context(), dsn+"&pool_max_conns="+strconv.Itoa(connections))
	must(b, err)
	b.Cleanup(pool.Close)
	store := pgstore.New(pool)
	pgtest.Migrate(b, pool, "")
	_, err = pool.Exec(b.Context(), `CREATE TABLE effects (id text NOT NULL)`)
	must(b, err)
	return store
}

func insert(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects VALUES ($1)`, key)
	return err
}

func BenchmarkPostgres(b *testing.B) { bench(b, postgres(b), insert) }

// BenchmarkCached is Postgres with Redis in front of it, which keeps nothing on disk.
func BenchmarkCached(b *testing.B) {
	client := connect(b, redistest.Options{})
	bench(b, hookonce.Cached(postgres(b), redisstore.NewCache(client, time.Hour, "bench")), insert)
}

// BenchmarkRedis has every policy of writing to the disk.
func BenchmarkRedis(b *testing.B) {
	for name, policy := range map[string]string{"memory": "", "everysec": "everysec", "always": "always"} {
		b.Run(name, func(b *testing.B) {
			store := redisstore.New(connect(b, redistest.Options{AOF: policy}))
			b.Run("lease", func(b *testing.B) { benchLease(b, store) })
			b.Run("copy", func(b *testing.B) { benchLeaseCopy(b, store) })
		})
	}
}

func connect(b *testing.B, o redistest.Options) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b, o).Addr(), PoolSize: connections})
	b.Cleanup(func() { client.Close() })
	return client
}

// bench measures an event whose effect is one row, an event under a lease, and a copy of finished work.
func bench[Tx any](b *testing.B, store hookonce.TxStore[Tx], effect func(ctx context.Context, tx Tx, key string) error) {
	b.Run("within", func(b *testing.B) {
		measure(b, func(ctx context.Context, key string) (hookonce.Claim, error) {
			return store.Within(ctx, request(key), func(tx Tx, _ hookonce.Claim) error { return effect(ctx, tx, key) })
		}, hookonce.Acquired)
	})
	b.Run("lease", func(b *testing.B) { benchLease(b, store) })
	b.Run("copy", func(b *testing.B) {
		done := func(ctx context.Context, _ string) (hookonce.Claim, error) {
			return store.Within(ctx, request("done"), func(Tx, hookonce.Claim) error { return nil })
		}
		_, err := done(b.Context(), "")
		must(b, err)
		measure(b, done, hookonce.Duplicate)
	})
}

func benchLease(b *testing.B, store hookonce.Store) {
	measure(b, func(ctx context.Context, key string) (hookonce.Claim, error) {
		req := request(key)
		req.Lease = time.Minute
		c, err := store.Claim(ctx, req)
		if err == nil {
			err = store.Complete(ctx, c)
		}
		return c, err
	}, hookonce.Acquired)
}

func benchLeaseCopy(b *testing.B, store hookonce.Store) {
	c, err := store.Claim(b.Context(), request("done"))
	must(b, err)
	must(b, store.Complete(b.Context(), c))
	measure(b, func(ctx context.Context, _ string) (hookonce.Claim, error) {
		return store.Claim(ctx, request("done"))
	}, hookonce.Duplicate)
}

// next numbers the events of this process.
var next atomic.Int64

// measure has the workers handle events and reports how many a second.
func measure(b *testing.B, handle func(ctx context.Context, key string) (hookonce.Claim, error), want hookonce.Verdict) {
	b.SetParallelism(workers / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := handle(b.Context(), "evt_"+strconv.FormatInt(next.Add(1), 10))
			if err != nil || c.Verdict != want {
				b.Errorf("%v, %v; want %v", c.Verdict, err, want)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{
		Ref: hookonce.Ref{Source: "billing", Key: key}, Type: "invoice.paid", Digest: []byte("0123456789abcdef"),
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
