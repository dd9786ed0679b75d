package redisstore_test

import (
	"context"
	"errors"
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
}
