package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// shop is an application whose effects are in Postgres, with Redis in front of its claims.
type shop struct {
	*hookonce.CachedStore[pgx.Tx]
	pool  *pgxpool.Pool
	redis *redistest.Server
}

// openShop opens a shop whose cache is at addr.
func openShop(t *testing.T, server *redistest.Server) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	must(t, err)
	t.Cleanup(pool.Close)
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	_, err = pool.Exec(t.Context(), "CREATE TABLE effects (key text NOT NULL)")
	must(t, err)
	return (&shop{pool: pool, redis: server}).behind(t, store, server.Addr())
}

// behind puts the Redis at addr in front of the store.
func (s *shop) behind(t *testing.T, store hookonce.TxStore[pgx.Tx], addr string) *shop {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialTimeout: time.Second})
	t.Cleanup(func() { must(t, client.Close()) })
	s.CachedStore = hookonce.Cached(store, redisstore.NewCache(client, time.Hour, "shop"))
	return s
}

// deliver handles one copy of an event, until it is acknowledged.
func (s *shop) deliver(ctx context.Context, key string) error {
	for {
		c, err := s.Within(ctx, request(key), func(tx pgx.Tx, _ hookonce.Claim) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ($1)", key)
			return err
		})
		if c.Verdict != hookonce.Busy {
			return err
		}
	}
}

// storm delivers copies of each of the events at once, and lets trouble happen when the first half is
// acknowledged.
func (s *shop) storm(t *testing.T, trouble func() error) {
	t.Helper()
	const events, copies = 40, 4
	var wg sync.WaitGroup
	errs := make(chan error, 2*copies*events+1)
	half := func(from int) {
		for range copies {
			wg.Go(func() {
				for i := from; i < from+events/2; i++ {
					errs <- s.deliver(t.Context(), fmt.Sprint("evt_", i))
				}
			})
		}
	}
	half(0)
	wg.Wait()
	wg.Go(func() { errs <- trouble() })
	half(0) // every event comes again
	half(events / 2)
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	s.once(t, events)
}

// once checks that each of the events had its effect, once.
func (s *shop) once(t *testing.T, events int) {
	t.Helper()
	var all, different int
	must(t, s.pool.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT key) FROM effects").Scan(&all, &different))
	if all != events || different != events {
		t.Errorf("%d effects of %d events, want %d of each", all, different, events)
	}
}

// Whatever happens to Redis, nothing that was acknowledged is lost and nothing happens twice where
// Postgres is behind it.
func TestCachedLosesNothing(t *testing.T) {
	for name, trouble := range map[string]func(r *redistest.Server) error{
		"nothing happens": func(*redistest.Server) error { return nil },
		"restarted":       func(r *redistest.Server) error { r.Stop(); return r.Restart() },
		"killed for good": func(r *redistest.Server) error { r.Kill(); return nil },
		"wiped":           func(r *redistest.Server) error { return r.Flush() },
		"hangs":           func(r *redistest.Server) error { return r.Hang(200 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, redistest.Start(t, redistest.Options{}))
			s.storm(t, func() error { return trouble(s.redis) })
		})
	}
}

func TestCachedEvicting(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Settings: []string{"maxmemory 1mb", "maxmemory-policy allkeys-lru"}})
	openShop(t, server).storm(t, func() error { return nil })
}

// The replica lacks what the primary was told last, and takes over.
func TestCachedFailedOver(t *testing.T) {
	primary := redistest.Start(t, redistest.Options{})
	replica := primary.Replica(t)
	s := openShop(t, primary)
	must(t, s.deliver(t.Context(), "evt_0"))
	must(t, primary.Synced())
	must(t, replica.Detach())
	must(t, s.deliver(t.Context(), "evt_1"))
	primary.Kill()
	must(t, replica.Promote())
	s.behind(t, s.Unwrap(), replica.Addr())
	s.storm(t, func() error { return nil })
}

// A copy of an event that the cache knows costs the database nothing: it may even be down.
func TestCachedSparesTheDatabase(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Options{})
	pool, err := pgxpool.New(t.Context(), cluster.DSN(t))
	must(t, err)
	t.Cleanup(pool.Close)
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	s := (&shop{pool: pool}).behind(t, store, redistest.Addr(t))

	nothing := func(pgx.Tx, hookonce.Claim) error { return nil }
	_, err = s.Within(t.Context(), request("evt_1"), nothing)
	must(t, err)
	must(t, cluster.Stop(true))
	c, err := s.Within(t.Context(), request("evt_1"), nothing)
	for range 20 { // a cache that does not answer at once, on a busy machine, has the database asked
		if err == nil {
			break
		}
		c, err = s.Within(t.Context(), request("evt_1"), nothing)
	}
	if err != nil || c.Verdict != hookonce.Duplicate {
		t.Errorf("copy of done work: %v, %v", c.Verdict, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := s.Within(ctx, request("evt_2"), nothing); err == nil {
		t.Errorf("new work without the database: %v", c.Verdict)
	}
}

func TestCache(t *testing.T) {
	client := connect(t, redistest.Addr(t))
	cache := redisstore.NewCache(client, time.Hour, fresh())
	known, bare := request("evt_1").Ref, request("evt_2").Ref
	must(t, cache.Remember(t.Context(), known, []byte("digest")))
	must(t, cache.Remember(t.Context(), bare, nil))
	for ref, want := range map[hookonce.Ref]string{known: "digest", bare: ""} {
		digest, ok, err := cache.Done(t.Context(), ref)
		if err != nil || !ok || string(digest) != want {
			t.Errorf("%s: %q, %v, %v", ref, digest, ok, err)
		}
	}
	if _, ok, err := cache.Done(t.Context(), request("evt_3").Ref); ok || err != nil {
		t.Errorf("unknown: %v, %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := cache.Done(ctx, known); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// The cache forgets by itself.
func TestCacheForgets(t *testing.T) {
	client, prefix := connect(t, redistest.Addr(t)), fresh()
	must(t, redisstore.NewCache(client, time.Hour, prefix).Remember(t.Context(), request("evt_1").Ref, nil))
	if d := ttl(t, client, prefix+":*"); d <= 59*time.Minute || d > time.Hour {
		t.Errorf("it forgets after %v, want an hour", d)
	}
}
