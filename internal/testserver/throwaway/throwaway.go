// Package throwaway has what packages need that start servers for tests, whatever the server.
package throwaway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestsAtOnce has so many parallel tests of the package run at once, whatever the number of cores: for packages whose tests
// wait for servers, processes and timers most of the time. Their TestMain calls it. What -parallel says wins.
//
// Tests that judge how long something took, or look at what belongs to the whole process or server, are not parallel: they
// run alone, before the others.
func TestsAtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // this is no test
	}
}

// InTime has a test try what ends with a context, which soon ends: a fifth of a second at first. On a busy machine that may be too
// little for it to begin, or it may be more than a second before all have seen that the context ended: then it is tried again with
// four times as much, up to a minute. What began in time, and went wrong, has failed.
func InTime(t testing.TB, try func(ctx context.Context) (begun bool, err error)) {
	t.Helper()
	for limit := 200 * time.Millisecond; ; limit *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		begun, err := try(ctx)
		end, _ := ctx.Deadline()
		begun = begun && time.Since(end) < time.Second
		cancel()
		if err == nil && begun {
			return
		}
		if begun || 4*limit > time.Minute {
			t.Errorf("within %v (begun in time: %v): %v", limit, begun, err)
			return
		}
	}
}

// Barrier is where so many goroutines of a test meet. It is for one meeting.
type Barrier struct {
	size    int32
	came    atomic.Int32
	met     chan struct{}
	partial atomic.Bool
}

// NewBarrier returns a barrier for so many.
func NewBarrier(size int) *Barrier { return &Barrier{size: int32(size), met: make(chan struct{})} }

// Wait returns when all have come, or ctx ends.
func (b *Barrier) Wait(ctx context.Context) {
	if b.came.Add(1) == b.size {
		close(b.met)
	}
	select {
	case <-b.met:
	case <-ctx.Done():
		b.partial.Store(true)
	}
}

// Passed reports whether each of them has seen that all others came.
func (b *Barrier) Passed() bool { return b.came.Load() == b.size && !b.partial.Load() }

// Histories has rapid try so many random histories in each test of the package: for packages in which each one is hundreds of
// round trips to a server. Their TestMain calls it. What -rapid.checks says wins.
func Histories(n int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err) // this is no test, or nothing in it uses rapid
	}
}

// Program returns the path of the first of the programs that there is, each a path or a name in PATH. Without any, the
// error says what needs them.
func Program(what string, candidates ...string) (string, error) {
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing, and this test needs %s: run `scripts/install-servers`, or use -short to leave such tests out",
		candidates[len(candidates)-1], what)
}

// FreePort returns a port on the loopback address that nobody listens on. It is below the ports that systems
// give to outgoing connections, so that it is still free when a server restarts.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// MemoryDir makes a folder for the files of a server that need not outlive anything: in memory if the system has room
// for them there, because a disk takes seconds to be given an empty database.
func MemoryDir(prefix string) (string, error) {
	const memory, enough = "/dev/shm", 1 << 30
	if free(memory) >= enough {
		if dir, err := os.MkdirTemp(memory, prefix); err == nil {
			return dir, nil
		}
	}
	return DiskDir(prefix)
}

// DiskDir makes a folder for the files of a server, among the temporary files of the system.
func DiskDir(prefix string) (string, error) { return os.MkdirTemp("", prefix) }

// User is the name of the user that servers run as which refuse to run as root. It matters to tests that
// run as root themselves; the others start servers as whoever they are.
type User string

// Run makes cmd run as the user, in a process group of its own so that a Ctrl-C in the terminal reaches
// the test alone.
func (u User) Run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = "/"
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := u.ids()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return err
}

// Own gives a path to the user.
func (u User) Own(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := u.ids()
	if err != nil {
		return err
	}
	return os.Chown(path, int(uid), int(gid))
}

func (u User) ids() (uid, gid uint32, err error) {
	found, err := user.Lookup(string(u))
	if err != nil {
		return 0, 0, fmt.Errorf("the server does not run as root, and there is no user %s: run `scripts/install-servers` (%w)", string(u), err)
	}
	id, err := strconv.ParseUint(found.Uid, 10, 32)
	group, err2 := strconv.ParseUint(found.Gid, 10, 32)
	return uint32(id), uint32(group), errors.Join(err, err2)
}

// Attend starts a command that ends when its standard input does, which comes when the returned Closer is
// closed, or when this process ends, however it ends. Close waits for the command.
func Attend(cmd *exec.Cmd) (io.Closer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &attendant{in, cmd}, cmd.Start()
}

type attendant struct {
	io.Closer
	cmd *exec.Cmd
}

// Close implements [io.Closer].
func (a *attendant) Close() error {
	return errors.Join(a.Closer.Close(), a.cmd.Wait())
}
