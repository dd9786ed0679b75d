//go:build linux

// Command bench measures hookonce beside what it is compared with: the ceiling of a handler that
// stores nothing, the baseline of a program that only stores, and the handlers that a good engineer
// writes by hand. It is what "make bench" runs; docs/performance.md holds its table.
//
// Everything is real: HTTP on the loopback interface, 2 KB bodies, verified signatures, fsync. The
// server under test, the generator and the sink are processes of their own (this program again), and
// the rows take turns, forwards in one round and backwards in the next, so that whatever else happens
// on the machine happens to all of them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	rounds   int
	duration time.Duration
	warmup   time.Duration
	conns    int
	only     string
	json     string
	dir      string
	profiles string
	size     int
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		err := child(os.Args[2], os.Args[3:])
		if err != nil {
			fmt.Println("failed:", err) // the parent reads this
		}
		exit(err)
	}
	var s options
	flag.IntVar(&s.rounds, "rounds", 5, "`number` of rounds; the table shows medians with the least and the greatest")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "measured `time` of each row in each round")
	flag.DurationVar(&s.warmup, "warmup", 500*time.Millisecond, "`time` before that")
	flag.IntVar(&s.conns, "conns", 64, "`number` of connections")
	flag.StringVar(&s.only, "only", "", "comma-separated `rows` to measure, such as a,e,f; all if not set")
	flag.StringVar(&s.json, "json", "", "`file` to write the figures to as JSON")
	flag.StringVar(&s.dir, "dir", "", "`folder` for the databases; must be on a real disk (default: the system's temporary one)")
	flag.StringVar(&s.profiles, "profiles", "", "`folder` for CPU profiles of every part")
	flag.IntVar(&s.size, "size", 0, "`number` of keys in the database of rows l2 and m2; without it rows l and m are left out")
	flag.Parse()
	if s.profiles != "" {
		exit(errors.Join(os.Setenv(profilesVariable, s.profiles), bench(s)))
	}
	exit(bench(s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bench(s options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := choose(s.only, s.size > 0)
	if err != nil {
		return err
	}
	rn, err := openRunner(s, chosen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rn.Close()) }()
	failed := rn.rowsInTurns(ctx, chosen)
	return errors.Join(failed, rn.write(chosen))
}

// rowsInTurns measures all rows, round after round. A row that fails twice in one round has no sample of it; the others go on.
func (rn *runner) rowsInTurns(ctx context.Context, chosen []row) error {
	var failed []error
	for round := range rn.rounds {
		for i := range chosen {
			if round%2 == 1 {
				i = len(chosen) - 1 - i
			}
			if err := rn.measure(ctx, chosen[i], round); err != nil {
				failed = append(failed, fmt.Errorf("row %s, round %d: %w", chosen[i].id, round+1, err))
			}
			if ctx.Err() != nil {
				return errors.Join(failed...)
			}
		}
	}
	return errors.Join(failed...)
}

// write reports what was measured, also of a run that was broken off.
func (rn *runner) write(chosen []row) error {
	r := newReport(rn.options, chosen, rn.samples)
	r.Again = rn.again
	if rn.json != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(rn.json, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	return r.markdown(os.Stdout)
}

// choose returns the rows that are asked for. Those that need a large database are left out without one.
func choose(only string, large bool) ([]row, error) {
	rows := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.large && !large })
	if only == "" {
		return rows, nil
	}
	var chosen []row
	for id := range strings.SplitSeq(only, ",") {
		found := false
		for _, r := range rows {
			if r.id == id || strings.TrimRight(r.id, "1234") == id {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no row %q", id)
		}
	}
	return chosen, nil
}
