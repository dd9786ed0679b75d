package release

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long something may take that happens at once on a machine with nothing else to do.
const patience = 3 * time.Minute

// machine is a clean Debian under a systemd of its own, with a network of its own that has only the loopback.
type machine struct {
	root string
	init int // its process 1, as seen from here
}

// debian unpacks a clean Debian.
func debian(t *testing.T) string {
	t.Helper()
	tarball := filepath.Join(*built, "debian.tar")
	if _, err := os.Stat(tarball); err != nil {
		command(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,ca-certificates", "bookworm", tarball+".new", "http://deb.debian.org/debian")
		if err := os.Rename(tarball+".new", tarball); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "debian")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "tar", "-xf", tarball, "-C", root)
	return root
}

// boot starts a machine, and stops it when the test ends.
func boot(t *testing.T) *machine {
	t.Helper()
	m := &machine{root: debian(t)}
	var console bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	nspawn := exec.CommandContext(ctx, "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--machine=packages", "--directory="+m.root, "--boot")
	nspawn.Stdout, nspawn.Stderr = &console, &console
	nspawn.Cancel = func() error { return nspawn.Process.Signal(syscall.SIGTERM) } // a shutdown in order
	nspawn.WaitDelay = time.Minute
	if err := nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = nspawn.Wait(); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("console of the machine:\n%s", &console)
		}
	})
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", nspawn.Process.Pid)
	eventually(t, "the machine runs", func() bool {
		select {
		case <-ended:
			t.Fatal("systemd-nspawn has ended")
		default:
		}
		text, err := os.ReadFile(children)
		if err != nil {
			return false
		}
		if _, err := fmt.Sscan(string(text), &m.init); err != nil {
			return false
		}
		out, _ := m.try("systemctl", "is-system-running", "--wait")
		return strings.HasPrefix(out, "running") || strings.HasPrefix(out, "degraded")
	})
	return m
}

// try runs a command in the machine and returns what it wrote.
func (m *machine) try(words ...string) (string, error) {
	c := exec.Command("nsenter", append([]string{"--target", fmt.Sprint(m.init), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}, words...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// run runs a command in the machine, which must succeed.
func (m *machine) run(t *testing.T, words ...string) string {
	t.Helper()
	out, err := m.try(words...)
	if err != nil {
		logs, _ := m.try("journalctl", "--no-pager", "-u", "hookonce")
		t.Fatalf("%v: %v\n%s\n%s", words, err, out, logs)
	}
	return out
}

// brings copies a file into the machine and returns its name there.
func (m *machine) brings(t *testing.T, name string) string {
	t.Helper()
	there := "/root/" + filepath.Base(name)
	command(t, "cp", name, m.root+there)
	return there
}

// inside calls f on a thread that is in the network of the machine. What is opened there stays there.
func (m *machine) inside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and it never returns: the thread ends with this call
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.init))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// client sends requests from within the machine.
func (m *machine) client() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(_ context.Context, network, address string) (c net.Conn, err error) {
			err = m.inside(func() error { c, err = net.Dial(network, address); return err })
			return c, err
		},
	}}
}

// listen listens within the machine.
func (m *machine) listen(t *testing.T, address string) (l net.Listener) {
	t.Helper()
	if err := m.inside(func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	return l
}

// command runs a command here, which must succeed.
func command(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// eventually asks until something is so. It is for what other programs do, which tell nobody.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}
