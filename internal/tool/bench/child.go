//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childCommand is the argument with which this program starts itself for one part of a row.
const childCommand = "child"

// profilesVariable names, for the children, the folder for their CPU profiles.
const profilesVariable = "HOOKONCE_BENCH_PROFILES"

// profile writes the CPU profile of this child until the returned function is called.
func profile(part string) (stop func(), err error) {
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return func() {}, nil
	}
	f, err := os.CreateTemp(dir, part+"-*.pprof")
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(f)
}

// child plays the part. A server says "ready ADDRESS" when it serves, and ends with its input.
func child(part string, args []string) error {
	stop, err := profile(part)
	if err != nil {
		return err
	}
	defer stop()
	switch part {
	case "load":
		return playLoad(args[0])
	case "sink":
		return serveSink()
	case "hang":
		return serveHang()
	case "baseline-sqlite":
		return playBaseline(args[0], baselineSQLite)
	case "baseline-postgres":
		return playBaseline(args[0], baselinePostgres)
	}
	return playServer(part, args[0])
}

// ready tells the parent the address, and waits for its end.
func ready(address string) {
	fmt.Println("ready", address)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// process is a child that serves.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
	started time.Duration // until it was ready
}

// startProcess starts a server and waits until it is ready.
func startProcess(part string, arg any) (*process, error) {
	began := time.Now()
	cmd, err := command(part, arg)
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	p.started = time.Since(began)
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		_, _ = p.end()
		return nil, fmt.Errorf("%s did not start: %q, %v", part, line, err)
	}
	p.address = address
	return p, nil
}

func command(part string, arg any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(arg)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, childCommand, part, string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig follows the thread that starts the child
	cmd.Env = append(os.Environ(), "GOTRACEBACK=single")
	return cmd, nil
}

// playPart runs a child to its end and decodes what it writes. It returns the processor time it took.
func playPart(part string, arg, result any) (cpu time.Duration, err error) {
	cmd, err := command(part, arg)
	if err != nil {
		return 0, err
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", part, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), json.Unmarshal(out, result)
}

// end stops the process and returns the processor time it took.
func (p *process) end() (cpu time.Duration, err error) {
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return 0, err
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), nil
}

// memory returns what the process holds in memory now and at most so far, in bytes.
func (p *process) memory() (now, most int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			now = kib << 10
		case name == "VmHWM":
			most = kib << 10
		}
	}
	return now, most, nil
}

// own returns the processor time of this process so far.
func own() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
