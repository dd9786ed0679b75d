package doctor

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/redisstore"
)

// redisChecks look at the server at a URL, or at all of its cluster.
func redisChecks() []check[string] {
	return []check[string]{{"redis", inspectRedis}}
}

func inspectRedis(ctx context.Context, url string) (found []Finding, _ error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return one(bad("write redis://user:password@host:6379/0", "this is not the URL of a Redis server"))
	}
	client := openRedis(ctx, o)
	defer client.Close()
	seen, err := redisstore.New(client).Inspect(ctx)
	if err != nil {
		return one(bad("start the server, or correct the URL", "%s cannot be asked: %s", o.Addr, oneLine(err)))
	}
	for _, f := range seen {
		found = append(found, Finding{Level: levelOf(f), Text: fmt.Sprintf("%s: %s is %q", f.Node, f.Setting, f.Value), Advice: f.Advice})
	}
	if len(found) == 0 {
		found = append(found, good("%s keeps what it is told", o.Addr))
	}
	return found, nil
}

// openRedis returns a client that leads to all servers on which claims may be: those of the cluster, if the one at the
// address is a member. What the server does not say is left to the check.
func openRedis(ctx context.Context, o *redis.Options) redis.UniversalClient {
	single := redis.NewClient(o)
	if single.InfoMap(ctx, "cluster").Item("Cluster", "cluster_enabled") != "1" {
		return single
	}
	_ = single.Close()
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
	})
}

// levelOf tells what loses claims when a machine fails, which is how many people run Redis on purpose, from what
// loses them without that.
func levelOf(f redisstore.Finding) Level {
	switch f.Setting {
	case "connected_slaves", "appendfsync", "no-appendfsync-on-rewrite":
		return Warning
	}
	return Fault
}
