package redistest

import (
	"context"
	"errors"
	"github.com/hookonce/hookonce/internal/testskip"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// client returns a client that tries once.
func client(t testing.TB, s *Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAddrIsShared(t *testing.T) {
	if one, two := Addr(t), Addr(t); one != two {
		t.Errorf("%s and %s", one, two)
	}
}

func TestServerKeepsWhatItIsToldTo(t *testing.T) {
	for name, c := range map[string]struct {
		aof  string
		stop func(*Server)
		want string
	}{
		"killed, with a file":     {"always", (*Server).Kill, "kept"},
		"stopped, with a file":    {"everysec", (*Server).Stop, "kept"},
		"killed, without a file":  {"", (*Server).Kill, ""},
		"stopped, without a file": {"", (*Server).Stop, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, Options{AOF: c.aof})
			if err := client(t, s).Set(t.Context(), "key", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			c.stop(s)
			if err := client(t, s).Ping(t.Context()).Err(); err == nil {
				t.Fatal("the server still answers")
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			if got := client(t, s).Get(t.Context(), "key").Val(); got != c.want {
				t.Errorf("the server kept %q, want %q", got, c.want)
			}
		})
	}
}

func TestReplicaTakesOver(t *testing.T) {
	s := Start(t, Options{})
	r := s.Replica(t)
	set := func(s *Server, key string) error { return client(t, s).Set(t.Context(), key, "kept", 0).Err() }
	if err := errors.Join(set(s, "early"), s.Synced(), r.Detach(), set(s, "late")); err != nil {
		t.Fatal(err)
	}
	if err := set(r, "early"); err == nil {
		t.Error("the replica takes writes although nobody promoted it")
	}
	s.Kill()
	if err := errors.Join(r.Promote(), set(r, "new")); err != nil {
		t.Fatal(err)
	}
	if n := client(t, r).Exists(t.Context(), "early", "late").Val(); n != 1 {
		t.Errorf("the replica has %d of the two keys, want the early one", n)
	}
}

func TestHang(t *testing.T) {
	s := Start(t, Options{})
	if err := s.Hang(time.Hour); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Set(ctx, "key", "value", 0).Err(); err == nil {
		t.Error("a server that is to hang for an hour answers")
	}
}

func TestFreeze(t *testing.T) {
	s := Start(t, Options{})
	c := client(t, s)
	over := make(chan error, 1)
	go func() { over <- s.Freeze(200 * time.Millisecond) }()
	for longest := time.Duration(0); ; {
		start := time.Now()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(start))
		select {
		case err := <-over:
			if err != nil || longest < 100*time.Millisecond {
				t.Errorf("the longest wait for an answer was %v: %v", longest, err)
			}
			return
		default:
		}
	}
}

func TestClusterSharesTheKeys(t *testing.T) {
	testskip.Long(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: Cluster(t)})
	defer c.Close()
	for _, key := range strings.Fields("a b c d e f g h i j") {
		if err := c.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Error(err)
		}
	}
	var counts [nodes]int64
	for i, addr := range Cluster(t) {
		single := redis.NewClient(&redis.Options{Addr: addr})
		defer single.Close()
		counts[i] = single.DBSize(t.Context()).Val()
	}
	if counts[0] == 0 || counts[1] == 0 || counts[2] == 0 || counts[0]+counts[1]+counts[2] != 10 {
		t.Errorf("the servers have %v keys", counts)
	}
}

// A test process that dies leaves no server and no files behind: the attendant hears of it.
func TestServerEndsWithTheProcess(t *testing.T) {
	s, err := start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.process.words.Close() // as the system does when the process is gone
	var exit *exec.ExitError
	if err := s.process.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err := client(t, s).Ping(t.Context()).Err(); err == nil {
		t.Error("the server still answers")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}
