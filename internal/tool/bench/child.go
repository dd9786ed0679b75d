//go:build linux

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
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

// lastWords is how much of what a child writes is kept, in bytes, to be shown when it fails.
const lastWords = 4 << 10

// process is a child that serves.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	said    *words        // what it writes after it is ready
	silent  chan struct{} // closed at the end of that
	log     *os.File      // its standard error
	ended   error         // once it has ended
	address string
	started time.Duration // until it was ready
}

// words keeps the end of what is written to it. The zero value is ready; it is for one goroutine at a time.
type words struct{ text []byte }

func (w *words) Write(p []byte) (int, error) {
	w.text = append(w.text, p[max(0, len(p)-lastWords):]...)
	w.text = w.text[max(0, len(w.text)-lastWords):]
	return len(p), nil
}

// failure adds to the error what the child said last, on standard output and on standard error.
func failure(part string, err error, said, log []byte) error {
	text := strings.TrimSpace(string(said) + "\n" + string(log))
	if text == "" {
		text = "it said nothing"
	}
	return fmt.Errorf("%s: %w: %s", part, err, text)
}

// startProcess starts a server and waits until it is ready. Its standard error goes to a file that has no name, as a log
// of production goes to the disk, and nobody reads it unless it fails.
func startProcess(part string, arg any) (p *process, err error) {
	began := time.Now()
	cmd, err := command(part, arg)
	if err != nil {
		return nil, err
	}
	p = &process{cmd: cmd, said: &words{}, silent: make(chan struct{})}
	if p.log, err = os.CreateTemp("", "hookonce-bench-log-"); err != nil {
		return nil, err
	}
	if err := os.Remove(p.log.Name()); err != nil {
		return nil, err
	}
	cmd.Stderr = p.log
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	p.started = time.Since(began)
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		_, _ = p.said.Write([]byte(line))
	}
	go func() {
		defer close(p.silent)
		_, _ = io.Copy(p.said, lines) // ends with the child
	}()
	if err != nil || !ok {
		_, ended := p.end()
		return nil, fmt.Errorf("it did not start: %w", cmp.Or(ended, failure(part, errors.New("no address came"), p.said.text, nil)))
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
	var log words
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return 0, failure(part, err, out[max(0, len(out)-lastWords):], log.text)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), json.Unmarshal(out, result)
}

// end stops the process and returns the processor time it took. It may be called again, and then says the same.
func (p *process) end() (cpu time.Duration, err error) {
	if p.cmd.ProcessState == nil {
		_ = p.stdin.Close()
		<-p.silent
		if err := p.cmd.Wait(); err != nil {
			p.ended = failure(p.cmd.Args[2], err, p.said.text, p.lastOfLog())
		}
		_ = p.log.Close()
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), p.ended
}

// kill ends the process at once, if it has not ended.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_, _ = p.end()
	}
}

// lastOfLog returns the end of what the process wrote to standard error.
func (p *process) lastOfLog() []byte {
	size, err := p.log.Seek(0, io.SeekEnd)
	if err != nil {
		return []byte(err.Error())
	}
	text, err := io.ReadAll(io.NewSectionReader(p.log, max(0, size-lastWords), lastWords))
	if err != nil {
		return []byte(err.Error())
	}
	return text
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
