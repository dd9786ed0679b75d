package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/redis/go-redis/v9"
)

// page is how many keys a step of Purge looks at. A step keeps the server busy for about a
// millisecond.
const page = 500

// Purge implements [hookonce.Store]. Nobody needs to call it for claims that expire by themselves (see
// [WithRetention]). There is no index of done claims, which would double the memory that they take: Purge
// walks through the keys of every primary in steps, from the beginning each time, so a large limit costs
// less than a small one. Each claim is deleted by itself. Beside an error n counts those that are known to
// be deleted.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (n int, err error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return 0, fmt.Errorf("redisstore: purge: %w", err)
	}
	for _, node := range nodes {
		deleted, err := s.purgeNode(ctx, node, before.UnixMicro(), limit-n)
		if n += deleted; err != nil {
			return n, fmt.Errorf("redisstore: purge: %w", err)
		}
	}
	return n, nil
}

// primaries returns the servers that hold the claims.
func (s *Store) primaries(ctx context.Context) (nodes []redis.Cmdable, err error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.client}, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	return nodes, err
}

func (s *Store) purgeNode(ctx context.Context, node redis.Cmdable, before int64, limit int) (n int, err error) {
	for cursor := uint64(0); n < limit; {
		var keys []string
		if keys, cursor, err = node.ScanType(ctx, cursor, s.prefix+claimKeys+"{*", page, "hash").Result(); err != nil {
			return n, err
		}
		deleted, err := purgeKeys(ctx, node, keys, before, limit-n)
		if n += deleted; err != nil || cursor == 0 {
			return n, err
		}
	}
	return n, nil
}

// purgeKeys deletes those of the keys that may go, at most limit.
func purgeKeys(ctx context.Context, node redis.Cmdable, keys []string, before int64, limit int) (n int, err error) {
	old, err := done(ctx, node, keys, before)
	if err != nil {
		return 0, err
	}
	for len(old) > 0 && n < limit {
		batch := old[:min(len(old), limit-n)]
		old = old[len(batch):]
		deleted, err := deleteDone(ctx, node, batch, before)
		if n += deleted; err != nil {
			return n, err
		}
	}
	return n, nil
}

// done returns those of the keys whose claims were done before the given time when it looked.
func done(ctx context.Context, node redis.Cmdable, keys []string, before int64) ([]string, error) {
	answers := make(map[string]*redis.SliceCmd, len(keys))
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			answers[key] = p.HMGet(ctx, key, "state", "updated")
		}
		return nil
	})
	return slices.DeleteFunc(keys, func(key string) bool {
		r := reply(answers[key].Val())
		if len(r) != 2 || r.text(0) != string(hookonce.StateDone) {
			return true
		}
		updated, err := strconv.ParseInt(r.text(1), 10, 64)
		return err != nil || updated >= before
	}), err
}

// deleteDone deletes those of the keys whose claims are still done and old enough.
func deleteDone(ctx context.Context, node redis.Cmdable, keys []string, before int64) (n int, err error) {
	var answers []once
	_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			cmd := purgeScript.byText(key, []any{before})
			answers = append(answers, cmd)
			if err := p.Process(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	})
	for _, cmd := range answers {
		if gone, _ := cmd.Int(); gone == 1 {
			n++
		}
	}
	return n, err
}
