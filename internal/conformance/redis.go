package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/storetest"
)

// redisPlace is keys that begin alike.
type redisPlace struct{ Target }

func (p redisPlace) client() (redis.UniversalClient, error) {
	o, err := redis.ParseURL(p.URL)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// connected runs work with a client.
func (p redisPlace) connected(work func(c redis.UniversalClient) error) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return work(c)
}

var redisVersion = regexp.MustCompile(`(?m)^(redis_version|server_name|valkey_version):(\S+)\r?$`)

func (p redisPlace) about(ctx context.Context) (string, error) {
	engine := "Redis"
	err := p.connected(func(c redis.UniversalClient) error {
		info, err := c.Info(ctx, "server").Result()
		for _, m := range redisVersion.FindAllStringSubmatch(info, -1) {
			engine += " " + m[2]
		}
		return err
	})
	return engine, err
}

func (p redisPlace) prepare(ctx context.Context) error {
	keys, err := p.keys(ctx)
	if err == nil && len(keys) > 0 {
		err = fmt.Errorf("there are keys that begin with %s already, and nothing that is there is touched: try again, for another name", p.Name)
	}
	return err
}

// keys are those of the place. The name has no character that a pattern knows.
func (p redisPlace) keys(ctx context.Context) (keys []string, err error) {
	err = p.connected(func(c redis.UniversalClient) error {
		all := c.Scan(ctx, 0, p.Name+"-*", 1000).Iterator()
		for all.Next(ctx) {
			keys = append(keys, all.Val())
		}
		return all.Err()
	})
	return keys, err
}

func (p redisPlace) remove(ctx context.Context) error {
	keys, err := p.keys(ctx)
	return errors.Join(err, p.connected(func(c redis.UniversalClient) error {
		for _, key := range keys {
			if err := c.Unlink(ctx, key).Err(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// redisSuites have no faults of connections: those are the client's.
func redisSuites(target Target) []suite {
	p := redisPlace{target}
	database := sync.OnceValue(func() storetest.Config {
		r := &testdb.Redis{Prefix: p.Name, Connect: func(t testing.TB) redis.UniversalClient {
			c, err := p.client()
			if err != nil {
				t.Fatal(p.hide(err))
			}
			t.Cleanup(func() { c.Close() })
			return c
		}}
		return r.Config()
	})
	return []suite{
		{"library", func(t *testing.T) {
			storetest.Run(t, database())
			storetest.RunConcurrent(t, database())
			storetest.RunResponses(t, database())
		}},
		{"history", func(t *testing.T) { storetest.RunHistory(t, database().History()) }},
	}
}
