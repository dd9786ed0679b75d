package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/redis/go-redis/v9"
)

// These tests hold what doc.go says under "What Redis can lose".

// alone returns a store over a server of its own.
func alone(t testing.TB, o redistest.Options) (*redistest.Server, *redisstore.Store) {
	t.Helper()
	server := redistest.Start(t, o)
	return server, redisstore.New(patient(t, server.Addr()))
}

// patient returns a client that goes on trying to connect while the server restarts.
func patient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// reconnect has the store's idle connections, which a restart broke, fail once each.
func reconnect(t testing.TB, s *redisstore.Store) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := s.Lookup(t.Context(), hookonce.Ref{Source: "nobody", Key: "nothing"})
		if errors.Is(err, hookonce.ErrNotFound) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestRestartWithoutPersistenceForgets(t *testing.T) {
	server, s := alone(t, redistest.Options{})
	finish(t, s, "evt_1")
	server.Stop()
	must(t, server.Restart())
	reconnect(t, s)
	if c := claim(t, s, request("evt_1"), hookonce.Acquired); c.Token != 1 {
		t.Errorf("token is %d, want 1", c.Token)
	}
}

func TestKilledServerWithAOFRemembers(t *testing.T) {
	server, s := alone(t, redistest.Options{AOF: "always"})
	finish(t, s, "done")
	failed := claim(t, s, request("failed"), hookonce.Acquired)
	must(t, s.Fail(t.Context(), failed, hookonce.Failure{Err: errDeclined}))
	held := claim(t, s, leased("held"), hookonce.Acquired)
	server.Kill()
	must(t, server.Restart())
	reconnect(t, s)
	claim(t, s, request("done"), hookonce.Duplicate)
	if c := claim(t, s, request("failed"), hookonce.Acquired); c.Token != 2 || c.LastError != errDeclined.Error() {
		t.Errorf("the failed attempt is forgotten: %#v", c)
	}
	claim(t, s, leased("held"), hookonce.Busy)
	must(t, s.Complete(t.Context(), held))
}

// Who was at work is told that the claim is gone, and the event runs again.
func TestWipedServerForgets(t *testing.T) {
	server, s := alone(t, redistest.Options{AOF: "always"})
	finish(t, s, "done")
	held := claim(t, s, request("held"), hookonce.Acquired)
	must(t, server.Flush())
	if err := s.Complete(t.Context(), held); !errors.Is(err, hookonce.ErrNotFound) {
		t.Errorf("Complete: %v, want ErrNotFound", err)
	}
	claim(t, s, request("done"), hookonce.Acquired)
}

func TestFailoverLosesWhatTheReplicaLacks(t *testing.T) {
	server, s := alone(t, redistest.Options{})
	replica := server.Replica(t)
	finish(t, s, "early")
	must(t, server.Synced())
	must(t, replica.Detach())
	finish(t, s, "late")
	server.Kill()
	must(t, replica.Promote())

	s = redisstore.New(patient(t, replica.Addr()))
	claim(t, s, request("early"), hookonce.Duplicate)
	claim(t, s, request("late"), hookonce.Acquired)
}

// A server that follows another takes no claims: the client may have been told of a failover too late.
func TestReplicaRefusesClaims(t *testing.T) {
	server, _ := alone(t, redistest.Options{})
	s := redisstore.New(patient(t, server.Replica(t).Addr()))
	if c, err := s.Claim(t.Context(), request("evt_1")); !redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("Claim = %#v, %v; want the server's refusal", c, err)
	}
}

// little is so little memory that it is used up by a few hundred claims.
const little = "maxmemory 3mb"

// fill stores what takes memory until a claim is refused, or the first done claim is gone. It returns the
// refusal. A server that evicts may take the claim that is being worked on before another.
func fill(t testing.TB, s *redisstore.Store, evicts bool) error {
	t.Helper()
	for i := range 4000 {
		c, err := s.Claim(t.Context(), request(fmt.Sprint("fill_", i)))
		if err != nil {
			return err
		}
		err = s.CompleteWith(t.Context(), c, hookonce.Response{Status: 200, Body: make([]byte, 10_000)})
		if err != nil && !(evicts && errors.Is(err, hookonce.ErrNotFound)) {
			return err
		}
		if i%500 != 499 { // a server that evicts spares what was looked at in the same second or later
			continue
		}
		if _, err := s.Lookup(t.Context(), request("done").Ref); errors.Is(err, hookonce.ErrNotFound) {
			return nil
		}
	}
	t.Fatal("the memory is not full")
	return nil
}

// With eviction done work is forgotten, without a word.
func TestEvictingServerForgets(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			_, s := alone(t, redistest.Options{Settings: []string{little, "maxmemory-policy " + policy}})
			finish(t, s, "done")
			must(t, fill(t, s, true))
			claim(t, s, request("done"), hookonce.Acquired)
		})
	}
}

// Without eviction a full server refuses new claims, answers copies of those that it has, records their
// outcomes, and forgets nothing.
func TestFullServerForgetsNothing(t *testing.T) {
	_, s := alone(t, redistest.Options{Settings: []string{little, "maxmemory-policy noeviction"}})
	finish(t, s, "done")
	completes := claim(t, s, leased("completes"), hookonce.Acquired)
	fails := claim(t, s, leased("fails"), hookonce.Acquired)
	if err := fill(t, s, false); !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("error is %v, want the server's refusal", err)
	}
	must(t, s.CompleteWith(t.Context(), completes, hookonce.Response{Status: 200, Body: []byte(strings.Repeat("x", 5000))}))
	_, err := s.Extend(t.Context(), fails, time.Hour)
	must(t, err)
	other := leased("fails")
	other.Digest = []byte("fedcba9876543210")
	if c := claim(t, s, other, hookonce.Busy); !c.Conflict || c.Token != fails.Token {
		t.Errorf("a copy with other content is answered %#v", c)
	}
	must(t, s.Fail(t.Context(), fails, hookonce.Failure{Err: errDeclined}))
	for _, req := range []hookonce.ClaimRequest{leased("fails"), leased("unseen")} {
		if c, err := s.Claim(t.Context(), req); !redis.HasErrorPrefix(err, "OOM") {
			t.Errorf("%s is claimed as %#v (%v); want the server's refusal", req.Key, c, err)
		}
	}
	for _, key := range []string{"done", "completes"} {
		claim(t, s, request(key), hookonce.Duplicate)
	}
	if r, err := s.Response(t.Context(), completes.Ref); err != nil || len(r.Body) != 5000 {
		t.Errorf("the answer that is kept is %d bytes long, %v", len(r.Body), err)
	}
	state(t, s, request("done").Ref, hookonce.StateDone)
	state(t, s, completes.Ref, hookonce.StateDone)
	state(t, s, fails.Ref, hookonce.StateFailed)
	n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 10_000})
	if err != nil || n < 3 {
		t.Errorf("Purge = %d, %v; want room again", n, err)
	}
	claim(t, s, request("new"), hookonce.Acquired)
}

// A worker from before the server lost its memory has the same token as one that began anew. doc.go says
// so; whoever mends it should say so there.
func TestTokensBeginAnewAfterLoss(t *testing.T) {
	server, s := alone(t, redistest.Options{})
	old := claim(t, s, request("evt_1"), hookonce.Acquired)
	must(t, server.Flush())
	anew := claim(t, s, request("evt_1"), hookonce.Acquired)
	if old.Token != anew.Token {
		t.Fatalf("tokens are %d and %d", old.Token, anew.Token)
	}
	must(t, s.Complete(t.Context(), old))
	must(t, s.Complete(t.Context(), anew))
}
