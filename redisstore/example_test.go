package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// A worker claims an event, does what it asks for in another system, and records how that went. The lease
// frees the claim if the worker dies.
func ExampleStore() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	store := redisstore.New(client)

	handle := func(ctx context.Context, id string, body []byte) error {
		claim, err := store.Claim(ctx, hookonce.ClaimRequest{
			Ref: hookonce.Ref{Source: "billing", Key: hookonce.NormalKey(id)}, Lease: time.Minute,
		})
		if err != nil {
			return err // nothing is known: do not acknowledge
		}
		switch claim.Verdict {
		case hookonce.Duplicate:
			return nil
		case hookonce.Unkeyed:
			return sendReceipt(ctx, body) // it has no id: each copy is done, and nothing is recorded
		case hookonce.Acquired:
		default:
			return claim.Verdict.Err() // such as ErrBusy: the owner may still fail, so let the sender try again
		}
		ctx = context.WithoutCancel(ctx) // the record outlives the request
		if err := sendReceipt(ctx, body); err != nil {
			return errors.Join(err, store.Fail(ctx, claim, hookonce.Failure{Err: err}))
		}
		return store.Complete(ctx, claim)
	}
	_ = handle
}

func sendReceipt(context.Context, []byte) error { return nil }

// A program says when it starts what its Redis can lose.
func ExampleStore_Inspect() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()

	findings, err := redisstore.New(client).Inspect(context.Background())
	if err != nil {
		log.Print(err)
	}
	for _, f := range findings {
		slog.Warn(f.String())
	}
}

// A finding in one line.
func ExampleFinding_String() {
	fmt.Println(redisstore.Finding{Node: "127.0.0.1:6379", Setting: "maxmemory_policy", Value: "allkeys-lru", Advice: "set it to noeviction."})
	// Output: redis 127.0.0.1:6379: maxmemory_policy is "allkeys-lru": set it to noeviction.
}

// Redis in front of the database spares it the copies. What is new is decided by the database, whatever
// happens to Redis.
func ExampleNewCache() {
	pool, err := pgxpool.New(context.Background(), "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()

	cache := redisstore.NewCache(client, 30*24*time.Hour, "shop-production")
	store := hookonce.Cached(pgstore.New(pool), cache)
	_ = store // for hookonce.Webhook
}
