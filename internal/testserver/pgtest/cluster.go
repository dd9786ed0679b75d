package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// Options say how a cluster differs from the usual one.
type Options struct {
	// Fsync makes commits durable on the disk, as in production. The default does not, and keeps the data in memory
	// where the system has room for it, for speed.
	Fsync bool
	// Settings are further lines of postgresql.conf, such as "max_connections = 50". They win over
	// the ones that this package sets.
	Settings []string
	// Major asks for a major version; see [Has]. The default is what [Variable] says, or else the newest of Debian's.
	Major int
}

// Cluster is one PostgreSQL server with its data. Its methods are for one goroutine at a time, DSN
// excepted.
type Cluster struct {
	dir       string // holds data, the log and the socket
	programs  string // the folder with the server's programs; "": PATH has them
	fsync     bool
	port      int
	keeper    io.Closer // see keep
	databases atomic.Int64
}

// Start starts a cluster that belongs to the test alone and is removed when the test ends. Under
// -short the test is skipped; a missing PostgreSQL fails it.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	skipShort(t)
	c, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.keeper.Close() })
	return c
}

func start(o Options) (*Cluster, error) {
	dir, err := programs(o.Major)
	if err != nil {
		return nil, err
	}
	c, err := place(o.Fsync, dir)
	if err != nil {
		return nil, err
	}
	if err := c.init(o.Settings); err != nil {
		return nil, errors.Join(err, c.keeper.Close())
	}
	if err := c.Restart(); err != nil {
		return nil, errors.Join(err, c.keeper.Close())
	}
	return c, nil
}

// place returns a cluster without data, with a folder and a port of its own, and the programs in a folder.
func place(fsync bool, programs string) (*Cluster, error) {
	makeDir := throwaway.MemoryDir
	if fsync {
		makeDir = throwaway.DiskDir
	}
	dir, err := tempDir(makeDir)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	port, err := throwaway.FreePort()
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	c := &Cluster{dir: dir, programs: programs, fsync: fsync, port: port}
	if c.keeper, err = c.keep(); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// init makes the data folder.
func (c *Cluster) init(settings []string) error {
	err := c.run("initdb", "--pgdata", c.data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	onOff := map[bool]string{true: "on", false: "off"}[c.fsync]
	return c.configure(append([]string{
		"listen_addresses = '127.0.0.1'",
		"port = " + strconv.Itoa(c.port),
		"unix_socket_directories = '" + c.dir + "'",
		"max_connections = 200",
		"fsync = " + onOff,
		"full_page_writes = " + onOff,
		"autovacuum_naptime = 1h",
	}, settings...)...)
}

// configure adds settings, which win over earlier ones.
func (c *Cluster) configure(settings ...string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	_, err = f.WriteString(strings.Join(settings, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// Restart starts the server after Stop or Kill and returns when it accepts connections. The port and
// the data are the same as before.
func (c *Cluster) Restart() error {
	deadline := time.Now().Add(patience)
	for {
		err := c.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", c.data(), "--log", filepath.Join(c.dir, "log"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
		// The backends of a killed server need a moment to notice and let go of its memory.
		time.Sleep(50 * time.Millisecond)
	}
}

// Log returns what the server wrote into its log from an offset on, and the offset of what comes later.
func (c *Cluster) Log(from int64) (text string, end int64) {
	all, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil || from > int64(len(all)) {
		return "", from
	}
	return string(all[from:]), int64(len(all))
}

// Stop stops the server and returns when it is down. immediate means without a checkpoint and
// without a word to the clients, so that the next start recovers from the log; otherwise open
// transactions are rolled back and clients are told.
func (c *Cluster) Stop(immediate bool) error {
	mode := map[bool]string{true: "immediate", false: "fast"}[immediate]
	return c.run("pg_ctl", "stop", "--wait", "--silent", "--mode", mode, "--pgdata", c.data())
}

// Kill kills all processes of the server as kill -9 does, and returns when it does not listen any more.
func (c *Cluster) Kill() error { return c.kill(0) }

// KillAllBut kills all processes of the server but one backend, which hangs from then on: it neither answers nor lets go
// of its connection. The returned function ends it, without which Restart fails.
func (c *Cluster) KillAllBut(backend int) (end func() error, err error) {
	if err := syscall.Kill(backend, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pgtest: backend %d: %w", backend, err)
	}
	return func() error { return syscall.Kill(backend, syscall.SIGKILL) }, c.kill(backend)
}

// Hang stops all processes of the server without a word to anybody: it takes connections and requests, and answers
// none. The returned function has it go on.
func (c *Cluster) Hang() (resume func() error, err error) {
	pid, err := c.pid()
	if err != nil {
		return nil, err
	}
	resume = func() error { return throwaway.SignalFamily(pid, 0, syscall.SIGCONT) }
	return resume, throwaway.SignalFamily(pid, 0, syscall.SIGSTOP)
}

func (c *Cluster) kill(except int) error {
	pid, err := c.pid()
	if err == nil {
		err = throwaway.SignalFamily(pid, except, syscall.SIGKILL)
	}
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return errors.Join(awaitPort(c.port, false), c.bury(pid))
}

// bury waits until the server's process has ended, and removes the files that have its number: whoever adopted the process may
// take its time to take note of the end, and the next server would wait for that.
func (c *Cluster) bury(pid int) error {
	for deadline := time.Now().Add(patience); !throwaway.Dead(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("pgtest: process %d was killed, and lives", pid)
		}
	}
	err := errors.Join(os.Remove(filepath.Join(c.data(), "postmaster.pid")), os.Remove(filepath.Join(c.dir, fmt.Sprintf(".s.PGSQL.%d.lock", c.port))))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return nil
}

// pid returns the process that started all others of the server.
func (c *Cluster) pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// awaitPort waits until the port is open, or is not.
func awaitPort(port int, open bool) error {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		if (err == nil) == open {
			return nil
		}
	}
	return fmt.Errorf("pgtest: %s: waited %v for open=%v", addr, patience, open)
}

// run runs one of PostgreSQL's programs as the server's user.
func (c *Cluster) run(name string, args ...string) error {
	path, err := program(c.programs, name)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...)
	if err := serverUser.Run(cmd); err != nil {
		return err
	}
	// A file, because a pipe would stay open as long as the server that pg_ctl leaves behind.
	out, err := os.CreateTemp("", "hookonce-pg-out-")
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("pgtest: %s: %w\n%s", name, err, text)
	}
	return nil
}
