package testdb

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/hookonce/hookonce/storetest"
)

// Redis is a server, or a cluster, in which every case has a prefix to itself.
type Redis struct {
	// Connect opens a client until t ends. Each store has one of its own, like a process.
	Connect func(t testing.TB) redis.UniversalClient
	// Prefix is what the prefixes begin with.
	Prefix string

	cases atomic.Int64
}

// Fresh returns a prefix that nobody has used: a fresh, empty database.
func (r *Redis) Fresh() string { return fmt.Sprintf("%s-%d", r.Prefix, r.cases.Add(1)) }

// Config is the suites' configuration.
func (r *Redis) Config() storetest.Config {
	return storetest.Config{Open: func(t testing.TB) func(storetest.Options) hookonce.Store {
		prefix := r.Fresh()
		return func(o storetest.Options) hookonce.Store {
			return redisstore.New(r.Connect(t), redisstore.WithPrefix(prefix), redisstore.WithClock(o.Clock))
		}
	}}
}
