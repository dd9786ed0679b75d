package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// Options say how a server differs from the usual one, which keeps nothing on disk.
type Options struct {
	// AOF is the appendfsync policy of the append-only file: "always", "everysec" or "no". Empty:
	// there is no such file, and a restart forgets everything.
	AOF string
	// Settings are further lines of redis.conf, such as "maxmemory 10mb". They win over the ones that
	// this package sets.
	Settings []string
}

// Server is one Redis server with its data. Its methods are for one goroutine at a time, Addr excepted.
type Server struct {
	dir     string // holds the configuration, the data and the log
	port    int
	process *process // nil while it is down
}

// Start starts a server that belongs to the test alone and is removed when the test ends. Under -short
// the test is skipped; a missing Redis fails it.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	skipShort(t)
	s, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func start(o Options) (*Server, error) {
	s, err := place(o)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	if err := s.Restart(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// place returns a server that does not run yet, with a folder and a port of its own.
func place(o Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "hookonce-redis-")
	if err != nil {
		return nil, err
	}
	port, err := throwaway.FreePort()
	if err != nil {
		return nil, err
	}
	path, err := program()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, port: port}
	return s, errors.Join(
		os.Symlink(path, s.file("redis-server")),
		os.WriteFile(s.file("redis.conf"), []byte(s.settings(o)), 0o600))
}

func (s *Server) settings(o Options) string {
	lines := []string{
		"bind 127.0.0.1",
		"port " + strconv.Itoa(s.port),
		"dir " + s.dir,
		"logfile " + s.file("log"),
		"databases 1",
		`save ""`,
		"repl-diskless-sync-delay 0",
	}
	if o.AOF != "" {
		lines = append(lines, "appendonly yes", "appendfsync "+o.AOF)
	}
	return strings.Join(append(lines, o.Settings...), "\n") + "\n"
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// Addr returns the server's address, host:port. It stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Restart starts the server after Stop or Kill, with the data that it kept, and returns when it answers.
func (s *Server) Restart() (err error) {
	if s.process, err = run(s.dir); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	return s.await("the server does not answer", func(ctx context.Context, c *redis.Client) bool { return c.Ping(ctx).Err() == nil })
}

// Stop has the server write what it keeps and end, and returns when it is down.
func (s *Server) Stop() { s.end("stop") }

// Kill kills the server as kill -9 does, and returns when it is down.
func (s *Server) Kill() { s.end("kill") }

func (s *Server) end(how string) {
	if s.process != nil {
		s.process.end(how)
	}
	s.process = nil
}

func (s *Server) close() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// Replica starts a second server that follows s, and returns when it is up to date. It refuses writes
// before Promote, and ends with the test.
func (s *Server) Replica(t testing.TB) *Server {
	t.Helper()
	r := Start(t, Options{Settings: []string{"replicaof 127.0.0.1 " + strconv.Itoa(s.port)}})
	err := r.await("the replica does not follow", func(ctx context.Context, c *redis.Client) bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Synced returns when a replica of s has everything that s was told.
func (s *Server) Synced() error {
	return s.do(func(ctx context.Context, c *redis.Client) error {
		// A write on this connection, so that WAIT has something to wait for.
		if err := c.Set(ctx, "redistest", "synced", time.Minute).Err(); err != nil {
			return err
		}
		n, err := c.Wait(ctx, 1, patience).Result()
		if err == nil && n < 1 {
			err = fmt.Errorf("redistest: %s: no replica is up to date after %v", s.Addr(), patience)
		}
		return err
	})
}

// Promote makes a replica a server of its own that takes writes. What it has not received is lost.
func (s *Server) Promote() error {
	return s.do(func(ctx context.Context, c *redis.Client) error { return c.ReplicaOf(ctx, "NO", "ONE").Err() })
}

// Detach makes a replica stop following without taking writes: from now on it lacks what the primary
// is told.
func (s *Server) Detach() error {
	return s.do(func(ctx context.Context, c *redis.Client) error { return c.ReplicaOf(ctx, "127.0.0.1", "1").Err() })
}

// Flush forgets everything that the server holds, as a restart without persistence does.
func (s *Server) Flush() error {
	return s.do(func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
}

// Hang has the server answer nobody until d is over.
func (s *Server) Hang(d time.Duration) error {
	return s.do(func(ctx context.Context, c *redis.Client) error { return c.ClientPause(ctx, d).Err() })
}

// Freeze has the server's process stand still for d, as kill -STOP and kill -CONT do: connections stay open, and
// what is sent meanwhile is carried out afterwards. It returns when the process goes on.
func (s *Server) Freeze(d time.Duration) error {
	var pid int
	err := s.do(func(ctx context.Context, c *redis.Client) (err error) {
		info := c.InfoMap(ctx, "server")
		if err := info.Err(); err != nil {
			return err
		}
		pid, err = strconv.Atoi(info.Item("Server", "process_id"))
		return err
	})
	if err != nil {
		return fmt.Errorf("redistest: %s: which process is it: %w", s.Addr(), err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	time.Sleep(d)
	return syscall.Kill(pid, syscall.SIGCONT)
}

// do runs one command on a connection of its own.
func (s *Server) do(command func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	return errors.Join(command(ctx, c), c.Close())
}

// await waits until ready says so.
func (s *Server) await(failure string, ready func(context.Context, *redis.Client) bool) error {
	return s.do(func(ctx context.Context, c *redis.Client) error {
		for !ready(ctx, c) {
			if ctx.Err() != nil {
				text, _ := os.ReadFile(s.file("log"))
				return fmt.Errorf("redistest: %s: %s: %w\n%s", s.Addr(), failure, ctx.Err(), text)
			}
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
}

// process is a running server together with the shell that attends it. The shell reads one word: it
// stops or kills the server then, and at the end of its input, which comes when this process ends,
// however it ends, it removes the server's files as well.
type process struct {
	words io.WriteCloser
	cmd   *exec.Cmd
}

const attend = `"$1/redis-server" "$1/redis.conf" >/dev/null 2>&1 </dev/null & server=$!
read word
if [ "$word" = stop ]; then kill -TERM $server; else kill -9 $server; fi
wait $server
[ -n "$word" ] || rm -rf "$1"`

// run starts the server whose files are in dir.
func run(dir string) (*process, error) {
	cmd := exec.Command("/bin/sh", "-c", attend, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C in the terminal reaches the test alone
	words, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &process{words, cmd}, cmd.Start()
}

// end says the word, and returns when the server is down.
func (p *process) end(word string) {
	_, _ = io.WriteString(p.words, word+"\n")
	_ = p.words.Close()
	_ = p.cmd.Wait() // its status is the server's
}
