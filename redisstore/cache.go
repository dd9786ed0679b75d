package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/redis/go-redis/v9"
)

// Cache remembers in Redis which claims are done, for [hookonce.Cached]. Redis may forget any of it at
// any time: evict it, lose it with its memory, be wiped. It is safe for concurrent use.
//
// Two databases must never share a prefix on one server: what is done in the one would be taken for done
// in the other. For the same reason the cache must be emptied when the database goes back in time, after
// a backup was restored or a standby took over that lacked commits.
type Cache struct {
	client redis.UniversalClient
	ttl    time.Duration
	prefix string
}

var _ hookonce.DoneCache = (*Cache)(nil)

// NewCache returns a cache on client, which stays the caller's to close. Keys are remembered for ttl,
// which must not be longer than the database keeps claims, and begin with prefix (see [WithPrefix]),
// followed by ":done:". NewCache panics if ttl or prefix makes no sense.
func NewCache(client redis.UniversalClient, ttl time.Duration, prefix string) *Cache {
	if client == nil || ttl < time.Millisecond {
		panic(fmt.Errorf("redisstore: NewCache needs a client, and at least a millisecond to remember, not %v", ttl))
	}
	if err := validPrefix(prefix); err != nil {
		panic(err)
	}
	return &Cache{client: client, ttl: ttl, prefix: prefix}
}

func (c *Cache) key(ref hookonce.Ref) string { return keyName(c.prefix+":done:", ref) }

// Done implements [hookonce.DoneCache].
func (c *Cache) Done(ctx context.Context, ref hookonce.Ref) (digest []byte, ok bool, err error) {
	digest, err = c.client.Get(ctx, c.key(ref)).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("redisstore: ask the cache for %s: %w", ref, err)
	}
	return digest, true, nil
}

// Remember implements [hookonce.DoneCache].
func (c *Cache) Remember(ctx context.Context, ref hookonce.Ref, digest []byte) error {
	if err := c.client.Set(ctx, c.key(ref), digest, c.ttl).Err(); err != nil {
		return fmt.Errorf("redisstore: have the cache remember %s: %w", ref, err)
	}
	return nil
}
