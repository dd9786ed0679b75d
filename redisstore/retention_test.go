package redisstore_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/redis/go-redis/v9"
)

// ttl returns when the only key that matches expires; negative: never.
func ttl(t testing.TB, c redis.UniversalClient, pattern string) time.Duration {
	t.Helper()
	names, err := c.Keys(t.Context(), pattern).Result()
	must(t, err)
	if len(names) != 1 {
		t.Fatalf("%d keys match %s, want 1: %q", len(names), pattern, names)
	}
	d, err := c.PTTL(t.Context(), names[0]).Result()
	must(t, err)
	return d
}

// Done claims expire, after the retention and not before; work that is not done never does.
func TestRetention(t *testing.T) {
	const retention = time.Hour
	c, prefix := connect(t, redistest.Addr(t)), fresh()
	s := redisstore.New(c, redisstore.WithPrefix(prefix), redisstore.WithRetention(retention))
	pattern := prefix + ":*"

	held := claim(t, s, request("evt_1"), hookonce.Acquired)
	open := func(what string) {
		t.Helper()
		if d := ttl(t, c, pattern); d >= 0 {
			t.Errorf("a claim that is %s expires after %v", what, d)
		}
	}
	open("held")
	must(t, s.Fail(t.Context(), held, hookonce.Failure{}))
	open("failed")
	held = claim(t, s, leased("evt_1"), hookonce.Acquired)
	open("held again")
	must(t, s.Fail(t.Context(), held, hookonce.Failure{Dead: true}))
	open("dead")
	held = claim(t, s, leased("evt_1"), hookonce.Acquired)
	must(t, s.CompleteWith(t.Context(), held, hookonce.Response{Status: http.StatusOK}))
	if d := ttl(t, c, pattern); d <= retention-time.Minute || d > retention {
		t.Errorf("a claim that is done expires after %v, want %v", d, retention)
	}
}

func TestRetentionUntilPurged(t *testing.T) {
	c, prefix := connect(t, redistest.Addr(t)), fresh()
	s := redisstore.New(c, redisstore.WithPrefix(prefix), redisstore.WithRetention(0))
	finish(t, s, "evt_1")
	if d := ttl(t, c, prefix+":*"); d >= 0 {
		t.Errorf("a claim that is to be kept expires after %v", d)
	}
}

// A source has its own period where one is given, and the store's where not. Keys of Once are kept unless one is given.
func TestRetentionOfASource(t *testing.T) {
	c := connect(t, redistest.Addr(t))
	for _, tt := range []struct {
		source string
		want   time.Duration // 0: for ever
	}{
		{"stripe", time.Minute},
		{"github", time.Hour},
		{"audited", 0},
		{"once:invoices", 0},
		{"once:mails", time.Minute},
	} {
		for name, complete := range map[string]func(*redisstore.Store, hookonce.Claim) error{
			"Complete": func(s *redisstore.Store, c hookonce.Claim) error { return s.Complete(t.Context(), c) },
			"CompleteWith": func(s *redisstore.Store, c hookonce.Claim) error {
				return s.CompleteWith(t.Context(), c, hookonce.Response{Status: http.StatusOK})
			},
		} {
			prefix := fresh()
			s := redisstore.New(c, redisstore.WithPrefix(prefix), redisstore.WithRetention(time.Hour),
				redisstore.WithSourceRetention("stripe", time.Minute), redisstore.WithSourceRetention("audited", 0),
				redisstore.WithSourceRetention("once:mails", time.Minute))
			held := claim(t, s, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: tt.source, Key: "evt_1"}}, hookonce.Acquired)
			must(t, complete(s, held))
			if d := ttl(t, c, prefix+":*"); tt.want == 0 && d >= 0 || tt.want > 0 && (d <= tt.want/2 || d > tt.want) {
				t.Errorf("%s: a claim of %s expires after %v, want %v", name, tt.source, d, tt.want)
			}
		}
	}
}

// An expired claim is a claim that there never was.
func TestExpiredClaimIsForgotten(t *testing.T) {
	s, _ := newStore(t, redisstore.WithRetention(time.Millisecond))
	c := finish(t, s, "evt_1")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := s.Lookup(t.Context(), c.Ref)
		if errors.Is(err, hookonce.ErrNotFound) {
			break
		}
		must(t, err)
		if time.Now().After(deadline) {
			t.Fatal("the claim does not expire")
		}
	}
	claim(t, s, request("evt_1"), hookonce.Acquired)
}

// Other programs' keys, other prefixes and the cache's keys are none of Purge's business.
func TestPurgeLeavesTheRestAlone(t *testing.T) {
	c, prefix := connect(t, redistest.Addr(t)), fresh()
	s := redisstore.New(c, redisstore.WithPrefix(prefix))
	other := redisstore.New(c, redisstore.WithPrefix(prefix+"0"))
	cache := redisstore.NewCache(c, time.Hour, prefix)
	mine, theirs := finish(t, s, "evt_1"), finish(t, other, "evt_1")
	must(t, cache.Remember(t.Context(), mine.Ref, mine.Digest))
	must(t, c.Set(t.Context(), prefix+":claim:{text}", "text", time.Hour).Err())

	n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 100})
	if err != nil || n != 1 {
		t.Fatalf("Purge = %d, %v; want 1", n, err)
	}
	state(t, other, theirs.Ref, hookonce.StateDone)
	if _, ok, err := cache.Done(t.Context(), mine.Ref); !ok || err != nil {
		t.Errorf("the cache forgot: %v", err)
	}
	must(t, c.Get(t.Context(), prefix+":claim:{text}").Err())
}

// Keys of different references differ, however they are put together.
func TestReferencesAreNotMixedUp(t *testing.T) {
	s, _ := newStore(t)
	for _, ref := range []hookonce.Ref{
		{Source: "a", Key: "b/c"}, {Source: "a/b", Key: "c"}, {Source: "a}", Key: "{b"}, {Source: "a", Key: "}{b"},
		{Source: "1:a", Key: "b"}, {Source: "1", Key: ":a1:b"}, {Source: "*", Key: "?"}, {Source: "[a]", Key: "*"},
	} {
		req := hookonce.ClaimRequest{Ref: ref}
		c := claim(t, s, req, hookonce.Acquired)
		must(t, s.Complete(t.Context(), c))
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for name, build := range map[string]func(){
		"no client":           func() { redisstore.New(nil) },
		"a ring":              func() { redisstore.New(ring) },
		"no clock":            func() { redisstore.New(client, redisstore.WithClock(nil)) },
		"no prefix":           func() { redisstore.New(client, redisstore.WithPrefix("")) },
		"a long prefix":       func() { redisstore.New(client, redisstore.WithPrefix(strings.Repeat("p", 65))) },
		"a prefix with *":     func() { redisstore.New(client, redisstore.WithPrefix("app*")) },
		"a prefix with {":     func() { redisstore.New(client, redisstore.WithPrefix("{app}")) },
		"negative retention":  func() { redisstore.New(client, redisstore.WithRetention(-1)) },
		"tiny retention":      func() { redisstore.New(client, redisstore.WithRetention(1)) },
		"a source's, tiny":    func() { redisstore.New(client, redisstore.WithSourceRetention("stripe", 1)) },
		"a cache of nothing":  func() { redisstore.NewCache(nil, time.Hour, "app") },
		"a cache for no time": func() { redisstore.NewCache(client, 0, "app") },
		"a cache for moments": func() { redisstore.NewCache(client, time.Microsecond, "app") },
		"a cache's prefix":    func() { redisstore.NewCache(client, time.Hour, "") },
	} {
		if panicked(build) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func panicked(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
