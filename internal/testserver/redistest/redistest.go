// Package redistest runs throwaway Redis servers for tests.
//
// [Addr] is what most tests need: a server that all tests of the process share, where each test uses
// keys of its own. [Start] gives a test a server of its own, to stop and kill, and [Cluster] three that
// share the keys. Servers listen on free ports of the loopback interface, keep their files in a
// temporary folder, and end with the test process, however that ends. The system's own server is never
// touched.
package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// patience bounds everything that waits for a server.
const patience = time.Minute

// shared is the server behind Addr, started by the first test that needs it.
var shared = sync.OnceValues(func() (*Server, error) { return start(Options{}) })

// Addr returns the address of the server that the tests of this process share. It keeps nothing on
// disk.
//
// Under -short the test is skipped; a missing Redis fails it.
func Addr(t testing.TB) string {
	t.Helper()
	skipShort(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.Addr()
}

// sharedCluster is the cluster behind Cluster.
var sharedCluster = sync.OnceValues(startCluster)

// Cluster returns the addresses of a cluster of three servers without replicas that the tests of this
// process share. Skips and fails like [Addr].
func Cluster(t testing.TB) []string {
	t.Helper()
	skipShort(t)
	members, err := sharedCluster()
	if err != nil {
		t.Fatal(err)
	}
	addrs := make([]string, len(members))
	for i, s := range members {
		addrs[i] = s.Addr()
	}
	return addrs
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Redis: run without -short")
	}
}

// program returns the path of the server's program. In Debian's package redis-tools, which has no service
// that would start by itself, it goes by the name of a tool; a program under that name becomes the server
// when it is called redis-server.
func program() (string, error) {
	return throwaway.Program("Redis", "redis-server", "valkey-server", "redis-check-rdb")
}
