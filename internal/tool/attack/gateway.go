//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// gateway is a running "hookonce serve".
type gateway struct {
	cmd           *exec.Cmd
	listen, admin string // host:port as bound
	ended         chan struct{}

	mu    sync.Mutex
	lines int      // logged, without those about events that were accepted
	log   []string // the last of them
}

// logKept is how many lines are kept to look at.
const logKept = 4096

var (
	runningLine = regexp.MustCompile(`msg="gateway: running".* listen=(\S+) admin=(\S+)`)
	usualLine   = regexp.MustCompile(`msg="event (accepted|is a duplicate)"`)
)

// startGateway starts binary with the configuration and waits until it serves. files is the limit of open files,
// 0 for that of this process.
func startGateway(binary, dir, config string, files int, show io.Writer) (*gateway, error) {
	path := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "serve", "--config", path)
	if files > 0 {
		cmd = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), binary, "serve", "--config", path)
	}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig follows the thread that starts the child
	logs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &gateway{cmd: cmd, ended: make(chan struct{})}
	running := make(chan []string, 1)
	go g.read(io.TeeReader(logs, show), running)
	select {
	case bound := <-running:
		g.listen, g.admin = bound[1], bound[2]
		return g, nil
	case <-g.ended:
		return nil, fmt.Errorf("the gateway did not start: %v\n%s", cmd.ProcessState, strings.Join(g.log, ""))
	case <-time.After(patience):
		return nil, errors.Join(errors.New("the gateway did not start in time"), g.end(syscall.SIGKILL))
	}
}

// address returns where the gateway listens for admins, or else for senders.
func (g *gateway) address(admin bool) string {
	if admin {
		return g.admin
	}
	return g.listen
}

// read counts and keeps what is logged until the process ends.
func (g *gateway) read(logs io.Reader, running chan<- []string) {
	in := bufio.NewReader(logs)
	for {
		line, err := in.ReadString('\n')
		if bound := runningLine.FindStringSubmatch(line); bound != nil {
			running <- bound
		}
		if err != nil {
			break
		}
		g.keep(line)
	}
	_ = g.cmd.Wait()
	close(g.ended)
}

func (g *gateway) keep(line string) {
	if usualLine.MatchString(line) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines++
	if g.log = append(g.log, line); len(g.log) > logKept {
		g.log = g.log[1:]
	}
}

// logged returns how many lines there were.
func (g *gateway) logged() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines
}

// says reports whether one of the last lines has the text, in any case.
func (g *gateway) says(text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Contains(strings.ToLower(strings.Join(g.log, "")), strings.ToLower(text))
}

// memory returns what the process held in memory at most so far, in bytes.
func (g *gateway) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc does not tell how much memory the gateway takes")
}

// end sends a signal and waits. A process that does not end is killed.
func (g *gateway) end(s os.Signal) error {
	if err := g.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-g.ended:
		return nil
	case <-time.After(patience):
		err := g.cmd.Process.Kill()
		<-g.ended
		return errors.Join(errors.New("the gateway did not end by itself"), err)
	}
}
