package endtoend

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(6) // with three gateways each, the Postgres that they share has connections enough for as many
	os.Exit(withProgram(m.Run))
}

// serving is hookonce as what runs for a while is started: with the race detector if the tests have it. Commands that end
// by themselves are run without, as `make test` compiles it besides: there are hundreds, and with it each takes a quarter of a
// second of the machine to start.
var serving string

// withProgram builds hookonce, and has it found before any other.
func withProgram(run func() int) int {
	dir, err := os.MkdirTemp("", "hookonce")
	if err == nil {
		defer os.RemoveAll(dir)
		serving = filepath.Join(dir, "hookonce")
		err = build(serving, "CGO_ENABLED=0", "GOFLAGS="+overlay())
	}
	if info, ok := debug.ReadBuildInfo(); ok && err == nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		serving = filepath.Join(dir, "hookonce-race")
		err = build(serving, "GOFLAGS="+os.Getenv("GOFLAGS")+" -race")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building hookonce:", err)
		return 1
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return run()
}

// overlay is the flag that `make mutants` has go read a fault by, if there is one.
func overlay() string {
	for flag := range strings.FieldsSeq(os.Getenv("GOFLAGS")) {
		if strings.HasPrefix(flag, "-overlay=") {
			return flag
		}
	}
	return ""
}

func build(file string, env ...string) error {
	cmd := exec.Command("go", "build", "-o", file, "github.com/hookonce/hookonce/cmd/hookonce")
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	return cmd.Run()
}

// command runs hookonce to its end and returns its exit status and what it wrote.
func command(env []string, args ...string) (status int, out string) {
	c := exec.Command("hookonce", args...)
	c.Env = env
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		return -1, err.Error()
	}
	return c.ProcessState.ExitCode(), string(text)
}

// patience bounds every wait for something that must happen, also on a machine that is busy with other tests.
const patience = 3 * time.Minute

// What a test waits for is looked at so often. Whoever looks more often takes the machine from what is waited for, and more
// so by starting a program.
const (
	look          = 50 * time.Millisecond
	lookByProgram = 250 * time.Millisecond
)

// process is a running "hookonce serve": the real program in a process of its own.
type process struct {
	cmd         *exec.Cmd
	addr, admin string // as bound
	out, log    *transcript
	ended       chan struct{}
	err         error // of the process, once it ended
}

// transcript collects what a process writes.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

var runningLine = regexp.MustCompile(`"gateway: running".*[ "]listen(?:=|":")([^" ]+)(?: |",")admin(?:=|":")([^" ]+)`)

// launch runs hookonce with the arguments and returns when it serves. dir and env are as in
// [exec.Cmd].
func launch(dir string, env []string, args ...string) (*process, error) {
	return launchCommand(exec.Command(serving, args...), dir, env)
}

// launchCommand is launch for a command that becomes the program.
func launchCommand(cmd *exec.Cmd, dir string, env []string) (*process, error) {
	p := &process{cmd: cmd, out: new(transcript), log: new(transcript), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout = dir, env, p.out
	logs, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	running := make(chan []string, 1)
	go p.read(logs, running)
	select {
	case bound := <-running:
		p.addr, p.admin = bound[1], bound[2]
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("it ended: %w\n%s", p.err, p.log)
	case <-time.After(patience):
		return nil, fmt.Errorf("it did not start: %w\n%s", p.end(syscall.SIGKILL), p.log)
	}
}

// read collects the log until the process ends, and passes on the addresses that it names.
func (p *process) read(logs io.Reader, running chan<- []string) {
	lines := bufio.NewReader(logs)
	for {
		line, err := lines.ReadString('\n')
		io.WriteString(p.log, line)
		if bound := runningLine.FindStringSubmatch(line); bound != nil {
			running <- bound
		}
		if err != nil {
			break
		}
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// signal sends the process a signal.
func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// amiss is what no process writes into its log, whatever is done to it.
var amiss = regexp.MustCompile(`DATA RACE|\bpanic\b|fatal error:`)

// amiss returns an error if the process wrote of what must not be. One that is killed has no exit status to tell of it.
func (p *process) amiss() error {
	if log := p.log.String(); amiss.MatchString(log) {
		return fmt.Errorf("it wrote:\n%s", log)
	}
	return nil
}

// endWith ends the process with the test at the latest, and fails the test if it wrote of what must not be.
func (p *process) endWith(t *testing.T) {
	t.Cleanup(func() {
		p.cmd.Process.Kill() // which fails if it ended before
		<-p.ended
		if err := p.amiss(); err != nil {
			t.Error(err)
		}
	})
}

// kill kills the process as kill -9 does. It is an error if it had ended by itself before.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("%w\n%s", err, p.log)
	}
	err := p.wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		return fmt.Errorf("it ended by itself: %v\n%s", err, p.log)
	}
	return nil
}

// wait returns how the process ended, nil for exit status 0 and a log with nothing amiss. A process that does not end is killed.
func (p *process) wait() error {
	select {
	case <-p.ended:
		return errors.Join(p.err, p.amiss())
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("it did not end by itself\n%s", p.log)
	}
}

// end sends a signal and waits.
func (p *process) end(s os.Signal) error {
	if err := p.signal(s); err != nil {
		return err
	}
	return p.wait()
}
