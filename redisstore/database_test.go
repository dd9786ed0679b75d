package redisstore_test

import (
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Kept()) }

// connect returns a client of the server, or of the cluster that several addresses name.
func connect(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// shared numbers the databases of this process.
var shared = testdb.Redis{Prefix: "case"}

// fresh returns a prefix that nobody has used: a fresh, empty database.
func fresh() string { return shared.Fresh() }

// suite is the conformance suite's configuration over one server or cluster.
func suite(addrs ...string) storetest.Config {
	r := &testdb.Redis{Prefix: fresh(), Connect: func(t testing.TB) redis.UniversalClient { return connect(t, addrs...) }}
	return r.Config()
}

// newStore returns a store over a fresh database on the shared server, unless an option names another, and
// a client of the server.
func newStore(t testing.TB, opts ...redisstore.Option) (*redisstore.Store, redis.UniversalClient) {
	t.Helper()
	c := connect(t, redistest.Addr(t))
	return redisstore.New(c, append([]redisstore.Option{redisstore.WithPrefix(fresh())}, opts...)...), c
}

func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}, Digest: []byte("0123456789abcdef")}
}

// claim claims and checks the verdict.
func claim(t testing.TB, s hookonce.Store, req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), req)
	must(t, err)
	if c.Verdict != want {
		t.Fatalf("%s: verdict is %v, want %v (claim %#v)", req.Ref, c.Verdict, want, c)
	}
	return c
}

// finish claims and completes a key.
func finish(t testing.TB, s hookonce.Store, key string) hookonce.Claim {
	t.Helper()
	c := claim(t, s, request(key), hookonce.Acquired)
	must(t, s.Complete(t.Context(), c))
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
