// Package conformance runs the suites that hold the stores to their promises against an engine that somebody else runs, in
// a place of its own there, and reports what came of it.
//
// The suites are tests, and package testing runs them, in a process of their own: one that panics, hangs or is killed is a
// finding, and whoever started it still cleans up. [Examine] starts that process and reads what it says; [Serve] is what
// runs inside.
package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Kind is a kind of engine, by the protocol that it speaks.
type Kind string

// The kinds.
const (
	Postgres Kind = "postgres"
	MySQL    Kind = "mysql"
	SQLite   Kind = "sqlite"
	Redis    Kind = "redis"
)

// Target is an engine to examine.
type Target struct {
	Kind Kind
	// URL leads to the engine, with the password: a postgres:// or redis:// URL, the driver's DSN for MySQL, and the
	// path of a file for SQLite.
	URL string
	// Name is what the name of the throwaway place begins with; [Examine] appends a random part. It begins with [Prefix]
	// and an underscore; empty: it is Prefix. The place is a database of MySQL, a folder beside SQLite's file, schemas
	// whose names begin alike in Postgres, and keys in Redis.
	Name string
	// Cases is a pattern as go test -run has it: only cases whose names match are run. Empty: all.
	Cases string
}

// Options are what [Examine] needs besides.
type Options struct {
	// Command starts the process that calls [Serve].
	Command []string
	// Version is that of this program, for the report.
	Version string
	// Stall is for how long nothing may happen before the process is ended; 0: three minutes. Searching an order for a
	// history takes up to one.
	Stall time.Duration
	// Ended is called when a case ends, if it is not nil.
	Ended func(Case)
}

// The results of a case.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Case is what came of one case of a suite.
type Case struct {
	// Name is a path: the suite, the group, the case.
	Name    string  `json:"name"`
	Result  string  `json:"result"`
	Seconds float64 `json:"seconds"`
	// Reason is what the case said; empty if it passed.
	Reason string `json:"reason,omitempty"`
}

// Report is what came of all cases. It names no host and no password.
type Report struct {
	Hookonce string `json:"hookonce"` // the version of this program
	Kind     Kind   `json:"kind"`
	// Engine is what the server says of itself, such as "PostgreSQL 15.14 on x86_64-pc-linux-gnu ...".
	Engine  string    `json:"engine"`
	Date    time.Time `json:"date"`
	Seconds float64   `json:"seconds"`
	// Pattern is the one that chose cases; empty: all were run.
	Pattern string `json:"pattern,omitempty"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
	// Aborted says why cases are missing at the end; empty: none are.
	Aborted string `json:"aborted,omitempty"`
	Cases   []Case `json:"cases"`
}

// Conforms reports whether all cases were run, and none failed.
func (r *Report) Conforms() bool { return r.Failed == 0 && r.Aborted == "" && r.Passed > 0 }

// place is somewhere on an engine where the suites can do as they like.
type place interface {
	// prepare makes the place, or refuses. It says what is missing.
	prepare(ctx context.Context) error
	// about is what the engine says of itself.
	about(ctx context.Context) (string, error)
	// remove takes away all that is in the place, and what still holds it.
	remove(ctx context.Context) error
}

// cleaning bounds the removal of what the suites made. It is done also when ctx has ended.
const cleaning = 2 * time.Minute

// Examine runs the suites against the engine and returns what came of them. An error means that nothing was run, or that
// what was made could not be removed: then the report is there as well. When ctx ends, the suites are ended, and what they
// made is removed.
func Examine(ctx context.Context, target Target, o Options) (report *Report, err error) {
	target, err = target.throwaway()
	if err != nil {
		return nil, err
	}
	p, err := placeOf(target)
	if err != nil {
		return nil, err
	}
	engine, err := p.about(ctx)
	if err != nil {
		return nil, fmt.Errorf("the engine cannot be reached: %w", target.hide(err))
	}
	if err := p.prepare(ctx); err != nil {
		return nil, target.hide(err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
		if e := p.remove(clean); e != nil {
			err = errors.Join(err, fmt.Errorf("%s could not be removed, do it by hand: %w", target.Name, target.hide(e)))
		}
	}()
	r := &run{Target: target, Options: o, report: &Report{
		Hookonce: o.Version, Kind: target.Kind, Engine: engine, Date: time.Now().UTC().Truncate(time.Second), Pattern: target.Cases, Cases: []Case{},
	}}
	r.suites(ctx)
	return r.report, nil
}

// placeOf returns the place on the engine that the target names.
func placeOf(target Target) (place, error) {
	switch target.Kind {
	case Postgres:
		return newPostgresPlace(target), nil
	case MySQL:
		return mysqlPlace{target}, nil
	case SQLite:
		return sqlitePlace{target}, nil
	case Redis:
		return redisPlace{target}, nil
	}
	return nil, fmt.Errorf("there are no suites for an engine of kind %q", target.Kind)
}

// run is one run of the suites.
type run struct {
	Target
	Options
	report *Report
}

// suites runs them in a process of their own until that ends, or has to be ended.
func (r *run) suites(ctx context.Context) {
	began := time.Now()
	defer func() { r.report.Seconds = time.Since(began).Round(time.Millisecond).Seconds() }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...)
	var dying bytes.Buffer
	cmd.Stderr = &headWriter{to: &dying}
	in, err := cmd.StdinPipe() // which also tells the process that this one has ended
	if err != nil {
		r.report.Aborted = err.Error()
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.report.Aborted = err.Error()
		return
	}
	if err := cmd.Start(); err != nil {
		r.report.Aborted = "the suites could not be started: " + err.Error()
		return
	}
	// A process that has ended already says so by its status.
	if err := json.NewEncoder(in).Encode(r.Target); err != nil && !errors.Is(err, syscall.EPIPE) {
		end(err)
	}
	running := r.read(out, end)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch cause := context.Cause(ctx); {
	case cause != nil:
		r.report.Aborted = r.hide(cause).Error()
	case errors.As(err, &exit) && exit.ExitCode() == 1 && len(running) == 0 && r.report.Failed > 0: // cases failed
	case err != nil:
		r.report.Aborted = fmt.Sprintf("the suites ended too soon (%v): %s", err, r.masked(lastWords(dying.String())))
	}
	for _, name := range running {
		r.ended(Case{Name: name, Result: Failed, Reason: "it did not end: " + r.report.Aborted})
	}
	slices.SortStableFunc(r.report.Cases, func(a, b Case) int { return strings.Compare(suiteOf(a.Name), suiteOf(b.Name)) })
}

func suiteOf(name string) string { suite, _, _ := strings.Cut(name, "/"); return suite }

// read follows what the process says and returns the cases that did not end. It ends the process if nothing happens.
func (r *run) read(out io.Reader, end context.CancelCauseFunc) (running []string) {
	stall := r.Stall
	if stall == 0 {
		stall = 3 * time.Minute
	}
	var o output
	timer := time.AfterFunc(stall, func() { end(fmt.Errorf("nothing happened for %v", stall)) })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if c, ended := o.line(line); ended {
			c.Reason = r.masked(c.Reason)
			r.ended(c)
		}
		if err != nil {
			return o.leaves()
		}
		timer.Reset(stall)
	}
}

func (r *run) ended(c Case) {
	switch c.Result {
	case Passed:
		r.report.Passed++
	case Failed:
		r.report.Failed++
	case Skipped:
		r.report.Skipped++
	}
	r.report.Cases = append(r.report.Cases, c)
	if r.Ended != nil {
		r.Ended(c)
	}
}

// lastWords are the first lines of what a process said when it died: of a panic they say what happened.
func lastWords(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), 6)], "; ")
}

// headWriter keeps the beginning of what is written.
type headWriter struct{ to *bytes.Buffer }

func (w *headWriter) Write(b []byte) (int, error) {
	if room := 1<<16 - w.to.Len(); room > 0 {
		w.to.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}
