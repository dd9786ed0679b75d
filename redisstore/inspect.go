package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Finding is something about a server that makes it lose claims, or not work as a store of them.
type Finding struct {
	// Node is the server's address, as the client knows it.
	Node string
	// Setting is what is set, or shown by INFO, and Value what it is.
	Setting, Value string
	// Advice says what comes of it and what to do. One or two sentences.
	Advice string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("redis %s: %s is %q: %s", f.Node, f.Setting, f.Value, f.Advice)
}

// Inspect looks at how the servers are set up and returns what can lose claims: eviction, missing
// persistence, replication that may lag, old versions, a client that knows one server of a cluster. Call
// it when the program starts, and log what it finds. It changes nothing, and does without what a managed
// service does not tell.
func (s *Store) Inspect(ctx context.Context) ([]Finding, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		addr := address(s.client)
		known, err := ask(ctx, s.client, addr)
		return known.findings(addr), err
	}
	var mu sync.Mutex
	var all []Finding
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		addr := node.Options().Addr
		known, err := ask(ctx, node, addr)
		delete(known, "cluster_enabled") // which is right with this client
		mu.Lock()
		defer mu.Unlock()
		all = append(all, known.findings(addr)...)
		return err
	})
	return all, err
}

func address(client redis.UniversalClient) string {
	if single, ok := client.(*redis.Client); ok {
		return single.Options().Addr
	}
	return "server"
}

// ask has a server say what it is; beside an error, nothing.
func ask(ctx context.Context, node redis.Cmdable, addr string) (info, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("redisstore: inspect %s: %w", addr, err)
	}
	known := parseInfo(text)
	// Managed services refuse CONFIG. What INFO says is enough for the rest.
	settings, err := node.ConfigGet(ctx, "*appendfsync*").Result()
	if err != nil && ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	maps.Copy(known, settings)
	return known, nil
}

// info is what a server says about itself, by name.
type info map[string]string

func parseInfo(text string) info {
	known := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			known[name] = value
		}
	}
	return known
}

// check is one thing that can be wrong.
type check struct {
	setting string
	wrong   func(value string, i info) bool
	advice  string
}

var checks = []check{
	{"redis_version", olderThan7,
		"the scripts need Redis 7 or Valkey: upgrade."},
	{"cluster_enabled", func(v string, _ info) bool { return v == "1" },
		"this client knows one server of a cluster: claims of slots that others have fail, and the others were not looked at: use redis.NewClusterClient."},
	{"role", func(v string, _ info) bool { return v == "slave" },
		"this server is a replica and refuses every claim: connect to the primary."},
	{"maxmemory_policy", func(v string, _ info) bool { return strings.HasPrefix(v, "allkeys-") },
		"when memory is short the server deletes claims, done ones and those being worked on, and their events run again: set maxmemory-policy to noeviction."},
	{"maxmemory_policy", func(v string, _ info) bool { return strings.HasPrefix(v, "volatile-") },
		"when memory is short the server deletes done claims, and copies of their events run again: set maxmemory-policy to noeviction."},
	{"aof_enabled", func(v string, _ info) bool { return v == "0" },
		"a restart forgets every claim since the last snapshot, if there is one: set appendonly to yes."},
	{"appendfsync", func(v string, i info) bool { return v == "no" && i["aof_enabled"] == "1" },
		"a power failure loses the claims of half a minute: set appendfsync to always, which loses none, or to everysec, which loses a second or two."},
	{"no-appendfsync-on-rewrite", func(v string, i info) bool { return v == "yes" && i["aof_enabled"] == "1" && i["appendfsync"] != "no" },
		"while the append-only file is rewritten or a snapshot is saved nothing is synced, whatever appendfsync says, and a power failure then loses the claims of half a minute: set no-appendfsync-on-rewrite to no."},
	{"aof_last_write_status", func(v string, _ info) bool { return v != "ok" },
		"the append-only file cannot be written, so nothing is kept: look at the disk and at the server's log."},
	{"connected_slaves", func(v string, _ info) bool { return v != "0" },
		"replication is asynchronous: a failover loses the claims that the replica had not received, and their events run again. Put a database behind the cache (hookonce.Cached) where that must not be."},
}

// findings returns what is wrong, in the order of checks. What the server does not tell is not.
func (i info) findings(addr string) (found []Finding) {
	for _, c := range checks {
		if value, ok := i[c.setting]; ok && c.wrong(value, i) {
			found = append(found, Finding{Node: addr, Setting: c.setting, Value: value, Advice: c.advice})
		}
	}
	return found
}

func olderThan7(version string, _ info) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < 7
}
