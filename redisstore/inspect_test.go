package redisstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
)

// settings returns what is found, by setting.
func settings(t testing.TB, s *redisstore.Store) (found []string) {
	t.Helper()
	findings, err := s.Inspect(t.Context())
	must(t, err)
	for _, f := range findings {
		found = append(found, f.Setting)
		if text := f.String(); !strings.Contains(text, f.Node) || !strings.Contains(text, f.Advice) || f.Value == "" {
			t.Errorf("a finding says too little: %#v", f)
		}
	}
	return found
}

// rewrites has a server sync nothing while it rewrites its log.
const rewrites = "no-appendfsync-on-rewrite yes"

func TestInspect(t *testing.T) {
	for name, c := range map[string]struct {
		options redistest.Options
		want    []string
	}{
		"safe":                   {redistest.Options{AOF: "always"}, nil},
		"the default with a log": {redistest.Options{AOF: "everysec"}, nil},
		"no log":                 {redistest.Options{}, []string{"aof_enabled"}},
		"no sync":                {redistest.Options{AOF: "no"}, []string{"appendfsync"}},
		"no sync meanwhile":      {redistest.Options{AOF: "always", Settings: []string{rewrites}}, []string{"no-appendfsync-on-rewrite"}},
		"no sync at all":         {redistest.Options{AOF: "no", Settings: []string{rewrites}}, []string{"appendfsync"}},
		"no log to rewrite":      {redistest.Options{Settings: []string{rewrites}}, []string{"aof_enabled"}},
		"evicts everything":      {redistest.Options{AOF: "always", Settings: []string{"maxmemory-policy allkeys-lru"}}, []string{"maxmemory_policy"}},
		"evicts what expires":    {redistest.Options{AOF: "always", Settings: []string{"maxmemory-policy volatile-ttl"}}, []string{"maxmemory_policy"}},
		"tells no settings":      {redistest.Options{AOF: "no", Settings: []string{`rename-command CONFIG ""`}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := alone(t, c.options)
			if got := settings(t, s); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestInspectReplication(t *testing.T) {
	server, s := alone(t, redistest.Options{AOF: "always"})
	replica := server.Replica(t)
	if got := settings(t, s); !slices.Equal(got, []string{"connected_slaves"}) {
		t.Errorf("primary: found %q", got)
	}
	onReplica := redisstore.New(patient(t, replica.Addr()))
	if got := settings(t, onReplica); !slices.Contains(got, "role") {
		t.Errorf("replica: found %q", got)
	}
}

// In a cluster every primary is looked at. A client that knows one of them is no client of the cluster.
func TestInspectCluster(t *testing.T) {
	addrs := redistest.Cluster(t)
	findings, err := redisstore.New(connect(t, addrs...)).Inspect(t.Context())
	must(t, err)
	var nodes []string
	for _, f := range findings {
		nodes = append(nodes, f.Node)
		if f.Setting != "aof_enabled" {
			t.Errorf("found %v", f)
		}
	}
	slices.Sort(nodes)
	slices.Sort(addrs)
	if !slices.Equal(nodes, addrs) {
		t.Errorf("found something on %q, want %q", nodes, addrs)
	}
	if got := settings(t, redisstore.New(connect(t, addrs[0]))); !slices.Equal(got, []string{"cluster_enabled", "aof_enabled"}) {
		t.Errorf("the client of one server: found %q", got)
	}
}

func TestInspectUnreachable(t *testing.T) {
	server, s := alone(t, redistest.Options{})
	server.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := s.Inspect(ctx); err == nil {
		t.Errorf("found %v on a server that is down", found)
	}
}

// What no server in the tests says.
func TestFindings(t *testing.T) {
	for text, want := range map[string]string{
		"redis_version:6.2.14\r\n":                          "redis_version",
		"redis_version:7.0.15\r\n":                          "",
		"redis_version:7.2.4\r\nserver_name:valkey\r\n":     "",
		"redis_version:10.0.0\r\n":                          "",
		"aof_enabled:1\r\naof_last_write_status:err\r\n":    "aof_last_write_status",
		"# Memory\r\n\r\nmaxmemory_policy:noeviction\r\n":   "",
		"# Cluster\r\ncluster_enabled:0\r\n":                "",
		"no colon\r\nrole:master\r\nconnected_slaves:0\r\n": "",
		"": "",
	} {
		var got []string
		for _, f := range redisstore.Findings(text, "server") {
			got = append(got, f.Setting)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// Whatever a server says of itself, findings have a value, advice and the server's address.
func FuzzFindings(f *testing.F) {
	f.Add("redis_version:6.2.14\r\nrole:slave\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nconnected_slaves:2\r\n")
	f.Add("appendfsync:no\naof_enabled:1\naof_last_write_status:err")
	f.Add("redis_version:\r\n:::\r\nrole")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range redisstore.Findings(text, "127.0.0.1:6379") {
			if found.Node != "127.0.0.1:6379" || found.Setting == "" || found.Advice == "" {
				t.Errorf("%#v", found)
			}
			if !strings.Contains(text, found.Setting) {
				t.Errorf("nothing in %q is called %s", text, found.Setting)
			}
		}
	})
}
