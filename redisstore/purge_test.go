package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/redis/go-redis/v9"
)

// ahead calls before ahead of each pipeline of that command, whose error is the pipeline's.
type ahead struct {
	of     string
	before func() error
}

func (a ahead) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a ahead) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (a ahead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == a.of {
			if err := a.before(); err != nil {
				return err
			}
		}
		return next(ctx, commands)
	}
}

// What a purge looks with, and what it deletes with.
const looks, deletes = "hmget", "eval"

// What becomes of a claim after a purge has looked at it is looked at again where it is deleted.
func TestPurgeLooksAgain(t *testing.T) {
	fail := func(s hookonce.Store) {
		must(t, s.Fail(t.Context(), claim(t, s, leased("evt_1"), hookonce.Acquired), hookonce.Failure{Err: errDeclined}))
	}
	for name, tt := range map[string]struct {
		kind             hookonce.PurgeKind
		behind           time.Duration // the clock of who acts
		first, meanwhile func(s hookonce.Store)
		left             hookonce.State
	}{
		"a worker takes it over": {hookonce.PurgeFailed, time.Hour, fail, func(s hookonce.Store) { claim(t, s, leased("evt_1"), hookonce.Acquired) }, hookonce.StateProcessing},
		"it fails again":         {hookonce.PurgeFailed, 0, fail, fail, hookonce.StateFailed},
		"it is done anew": {hookonce.PurgeEvents, 0, func(s hookonce.Store) { finish(t, s, "evt_1") }, func(s hookonce.Store) {
			n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 1})
			if n != 1 || err != nil {
				t.Errorf("another purge deleted %d, %v", n, err)
			}
			finish(t, s, "evt_1")
		}, hookonce.StateDone},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := fresh()
			other := redisstore.New(connect(t, redistest.Addr(t)), redisstore.WithPrefix(prefix),
				redisstore.WithClock(func() time.Time { return time.Now().Add(-tt.behind) }))
			client := connect(t, redistest.Addr(t))
			tt.first(other)
			before, acted := time.Now(), false
			client.AddHook(ahead{deletes, func() error { tt.meanwhile(other); acted = true; return nil }})
			n, err := redisstore.New(client, redisstore.WithPrefix(prefix)).Purge(t.Context(), hookonce.PurgeRequest{Kind: tt.kind, Before: before, Limit: 10})
			if n != 0 || err != nil || !acted {
				t.Errorf("deleted %d, %v; something happened meanwhile: %v", n, err, acted)
			}
			state(t, other, request("evt_1").Ref, tt.left)
		})
	}
}

// A purge whose look or deletion failed does not say that there was nothing to delete.
func TestPurgeTellsThatItFailed(t *testing.T) {
	for _, command := range []string{looks, deletes} {
		s, client := newStore(t)
		finish(t, s, "evt_1")
		client.AddHook(ahead{command, func() error { return errDeclined }})
		if n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 10}); n != 0 || !errors.Is(err, errDeclined) {
			t.Errorf("%s: deleted %d, %v", command, n, err)
		}
	}
	t.Run("beside keys that are moved", func(t *testing.T) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.Cluster(t)})
		defer client.Close()
		client.OnNewNode(func(node *redis.Client) { node.AddHook(mixed{}) })
		s := redisstore.New(client, redisstore.WithPrefix(fresh()))
		for i := range 20 { // of which a server has several
			finish(t, s, fmt.Sprint("evt_", i))
		}
		if n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 100}); n != 0 || !errors.Is(err, errDeclined) {
			t.Errorf("deleted %d, %v", n, err)
		}
	})
}

// mixed has the first command of a pipeline answered with where else to ask, and the last one fail.
type mixed struct{ ahead }

func (mixed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if len(commands) < 2 {
			return next(ctx, commands)
		}
		commands[0].SetErr(moved{})
		commands[len(commands)-1].SetErr(errDeclined)
		return moved{}
	}
}

// moved is an answer of a server that has not the key's slot.
type moved struct{}

func (moved) Error() string { return "MOVED 1 127.0.0.1:1" }
func (moved) RedisError()   {}

// A slot of a cluster that is being moved keeps no purge from what is in the others. Claims in it are purged when it is
// where it belongs.
func TestPurgeWhileASlotIsMoved(t *testing.T) {
	addrs := redistest.Cluster(t)
	for name, tt := range map[string]struct {
		early bool // the claim is made before the move begins, so that it is where the slot comes from
		at    string
	}{
		"a claim that came to be meanwhile":             {false, ""},
		"one that is moved after the purge has seen it": {true, looks},
		"one that is moved after it was looked at":      {true, deletes},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := fresh()
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
			defer client.Close()
			s := redisstore.New(client, redisstore.WithPrefix(prefix))
			key := prefix + ":claim:{" + hookonce.JoinKey("billing", "moves") + "}"
			m := moving(t, client, addrs, key)
			if tt.early {
				finish(t, s, "moves")
			}
			m.begin(t)
			if !tt.early {
				finish(t, s, "moves")
			}
			const others = 20 // on all of the servers
			for i := range others {
				finish(t, s, fmt.Sprint("stays_", i))
			}

			watched := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
			defer watched.Close()
			watched.OnNewNode(func(node *redis.Client) {
				if node.Options().Addr == m.from.Options().Addr {
					node.AddHook(ahead{tt.at, func() error { return m.move(t.Context(), key) }})
				}
			})
			purge := func(s *redisstore.Store, want int) {
				t.Helper()
				n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 100})
				if n != want || err != nil {
					t.Errorf("deleted %d, %v; want %d", n, err, want)
				}
			}
			purge(redisstore.New(watched, redisstore.WithPrefix(prefix)), others)
			state(t, s, request("moves").Ref, hookonce.StateDone)
			alone := redisstore.New(m.to, redisstore.WithPrefix(prefix))
			if n, err := alone.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 100}); !redis.HasErrorPrefix(err, "MOVED") {
				t.Errorf("a client that knows one server of the cluster is answered %d, %v", n, err)
			}
			m.end(t)
			purge(s, 1)
		})
	}
}

// slotMove hands a slot of a cluster over from one server to another.
type slotMove struct {
	slot     int64
	from, to *redis.Client
	ids      [2]string // of both
	port     string    // of the second
}

// moving readies a move of the slot of a key.
func moving(t *testing.T, client *redis.ClusterClient, addrs []string, key string) *slotMove {
	t.Helper()
	m := &slotMove{slot: client.ClusterKeySlot(t.Context(), key).Val()}
	owner, err := client.MasterForKey(t.Context(), key)
	must(t, err)
	open := func(addr string) (c *redis.Client, id string) {
		c = redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { c.Close() })
		id, err := c.ClusterMyID(t.Context()).Result()
		must(t, err)
		return c, id
	}
	other := addrs[slices.IndexFunc(addrs, func(addr string) bool { return addr != owner.Options().Addr })]
	m.from, m.ids[0] = open(owner.Options().Addr)
	m.to, m.ids[1] = open(other)
	_, m.port, err = net.SplitHostPort(other)
	must(t, err)
	return m
}

func (m *slotMove) begin(t *testing.T) {
	t.Helper()
	must(t, m.to.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.ids[0]).Err())
	must(t, m.from.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.ids[1]).Err())
	t.Cleanup(func() { m.end(t) })
}

// move moves a key, if it is still where it was.
func (m *slotMove) move(ctx context.Context, key string) error {
	return m.from.Migrate(ctx, "127.0.0.1", m.port, key, 0, time.Minute).Err()
}

func (m *slotMove) end(t *testing.T) {
	t.Helper()
	for _, c := range []*redis.Client{m.to, m.from} {
		must(t, c.Do(context.WithoutCancel(t.Context()), "CLUSTER", "SETSLOT", m.slot, "NODE", m.ids[1]).Err())
	}
}
