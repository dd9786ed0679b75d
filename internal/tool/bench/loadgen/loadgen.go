//go:build linux

// Package loadgen makes an even load of HTTP requests over kept-alive connections and measures the answers. It
// drives all connections from one goroutine around epoll, because it shares the machine with what it measures.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hookonce/hookonce/internal/traffic"
)

// Load describes a run of requests over kept-alive connections, each with one request in flight.
type Load struct {
	// Target must be plain http.
	Target *traffic.Target
	// Conns is the number of connections.
	Conns int
	// Rate is how many requests per second are sent, evenly spaced. Their latency counts from the
	// moment at which they should have been sent, so that a stall is seen by all requests that it
	// holds up. Zero sends the next request as soon as an answer is there.
	Rate float64
	// Warmup is left out of the result, Duration is what follows it.
	Warmup, Duration time.Duration
	// Next returns the next request. It may reuse buf, which is what it returned for the same
	// connection before, or nil. Calls are not concurrent.
	Next func(buf []byte) []byte
}

// Result is what a run was answered.
type Result struct {
	// Seconds is the measured time, and Answers how many requests were answered in it.
	Seconds float64 `json:"seconds"`
	Answers uint64  `json:"answers"`
	// Total counts all answers, those in the warm-up and after the end included.
	Total uint64 `json:"total"`
	// Statuses and Verdicts count all answers by HTTP status and by Hookonce-Status.
	Statuses map[int]uint64    `json:"statuses"`
	Verdicts map[string]uint64 `json:"verdicts,omitempty"`
	// Latency is that of Answers.
	Latency traffic.Quantiles `json:"latency"`
}

// drain is how long answers to requests in flight are waited for at the end of a run.
const drain = 10 * time.Second

// tick is how often a run with a rate looks for requests that are due.
const tick = 100 * time.Microsecond

// Run makes the load, in one goroutine around epoll: at tens of thousands of requests per second the
// hand-over between goroutines would cost more than the requests. A connection that fails or is
// closed by the server ends the run with an error, because the figures would mean nothing.
func (l Load) Run(ctx context.Context) (*Result, error) {
	r := &run{Load: l, poller: -1, timer: -1, result: &Result{Statuses: map[int]uint64{}, Verdicts: map[string]uint64{}}}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if err := r.loop(ctx); err != nil {
		return nil, err
	}
	r.result.Seconds = l.Duration.Seconds()
	r.result.Latency = r.latency.Quantiles()
	return r.result, nil
}

type run struct {
	Load
	poller, timer int // descriptors; -1: none
	conns         []*conn
	idle          []*conn
	result        *Result
	latency       traffic.Histogram

	first, last time.Time // the measured window
	began       time.Time
	sent        int // requests sent so far
	inFlight    int
}

// conn is one connection.
type conn struct {
	file *os.File
	fd   int
	buf  []byte // request
	in   []byte // answer so far
	due  time.Time
}

func (r *run) open(ctx context.Context) error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	r.poller = fd
	for range r.Conns {
		c, err := dial(ctx, r.Target)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
		if err := r.watch(c.fd, len(r.conns)-1); err != nil {
			return err
		}
	}
	r.idle = append(r.idle, r.conns...)
	if r.Rate > 0 {
		return r.startTimer()
	}
	return nil
}

func dial(ctx context.Context, t *traffic.Target) (*conn, error) {
	dialed, err := t.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer dialed.Close() // File duplicates the descriptor
	tcp, ok := dialed.(*net.TCPConn)
	if !ok {
		return nil, errors.New("load needs a plain http target")
	}
	f, err := tcp.File()
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	return &conn{file: f, fd: fd, in: make([]byte, 0, 16<<10)}, nil
}

const timerIndex = -1

func (r *run) startTimer() error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	r.timer = fd
	each := unix.NsecToTimespec(int64(tick))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: each, Value: each}, nil); err != nil {
		return os.NewSyscallError("timerfd_settime", err)
	}
	return r.watch(fd, timerIndex)
}

func (r *run) watch(fd, index int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(r.poller, unix.EPOLL_CTL_ADD, fd, &ev))
}

func (r *run) close() {
	for _, c := range r.conns {
		_ = c.file.Close()
	}
	for _, fd := range []int{r.timer, r.poller} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// loop sends what is due and takes what is answered until the time is over and nothing is in flight.
func (r *run) loop(ctx context.Context) error {
	r.began = time.Now()
	r.first = r.began.Add(r.Warmup)
	r.last = r.first.Add(r.Duration)
	events := make([]unix.EpollEvent, 256)
	for now := r.began; ; now = time.Now() {
		if err := r.sendDue(now); err != nil {
			return err
		}
		switch {
		case now.After(r.last) && r.inFlight == 0:
			return nil
		case now.After(r.last.Add(drain)):
			return fmt.Errorf("%d requests were not answered within %v after the end", r.inFlight, drain)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		n, err := unix.EpollWait(r.poller, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("epoll_wait", err)
		}
		for _, ev := range events[:max(n, 0)] {
			if err := r.ready(int(ev.Fd)); err != nil {
				return err
			}
		}
	}
}

// sendDue gives requests to idle connections: all that are due, or one to each without a rate.
func (r *run) sendDue(now time.Time) error {
	if now.After(r.last) {
		return nil
	}
	for len(r.idle) > 0 {
		due := now
		if r.Rate > 0 {
			due = r.began.Add(time.Duration(float64(r.sent) / r.Rate * 1e9))
			if due.After(now) {
				return nil
			}
		}
		c := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		c.due = due
		c.buf = r.Next(c.buf)
		if err := c.write(); err != nil {
			return err
		}
		r.sent++
		r.inFlight++
	}
	return nil
}

func (c *conn) write() error {
	for b := c.buf; len(b) > 0; {
		n, err := unix.Write(c.fd, b)
		switch {
		case n > 0:
			b = b[n:]
		case errors.Is(err, unix.EAGAIN):
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return os.NewSyscallError("poll", err)
			}
		case !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("write", err)
		}
	}
	return nil
}

// ready takes what one descriptor has to say.
func (r *run) ready(index int) error {
	if index == timerIndex {
		var expirations [8]byte
		_, _ = unix.Read(r.timer, expirations[:]) // only to silence it until the next tick
		return nil
	}
	c := r.conns[index]
	if cap(c.in)-len(c.in) < 4096 {
		c.in = append(make([]byte, 0, 2*cap(c.in)), c.in...)
	}
	n, err := unix.Read(c.fd, c.in[len(c.in):cap(c.in)])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return os.NewSyscallError("read", err)
	case n == 0:
		return errors.New("the server closed a connection")
	}
	c.in = c.in[:len(c.in)+n]
	answer, took, err := traffic.Parse(c.in, false)
	switch {
	case err != nil || took == 0:
		return err
	case took < len(c.in):
		return fmt.Errorf("%w: %d bytes follow an answer that was not asked for", traffic.ErrMalformed, len(c.in)-took)
	}
	return r.count(c, answer)
}

func (r *run) count(c *conn, answer traffic.Response) error {
	now := time.Now()
	c.in = c.in[:0]
	r.inFlight--
	r.idle = append(r.idle, c)
	r.result.Total++
	r.result.Statuses[answer.Status]++
	if v := answer.Field("Hookonce-Status"); v != nil {
		r.result.Verdicts[string(v)]++
	}
	if !now.Before(r.first) && now.Before(r.last) {
		r.result.Answers++
		r.latency.Record(now.Sub(c.due))
	}
	if answer.Close {
		return errors.New("the server closes connections instead of keeping them alive")
	}
	return nil
}
