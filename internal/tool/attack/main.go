//go:build linux

// Command attack tries to shut senders out of a gateway, to exhaust it and to slip past its lines, and tells what a genuine
// sender saw meanwhile. It is what "make attack" runs; docs/security.md names its attacks.
//
// Everything is real: a "hookonce serve" of its own for every attack, with a fresh store, an app and a service behind
// it, and hostile connections from addresses of their own, for all of 127.0.0.0/8 is this machine. Nothing
// leaves the loopback interface. Beside each attack a genuine sender posts at a steady rate, over kept and new
// connections, and somebody asks for health and readiness.
//
// The exit status is 1 if a bound is broken: fewer than 99 of 100 genuine requests were answered 2xx within a second,
// the process took more memory or wrote more lines than is stated, an acknowledged event was lost or
// doubled, or what the attack itself looks at is not as it should be.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// settings are what the command line says.
type settings struct {
	binary   string
	only     string
	json     string
	dir      string
	store    string
	duration time.Duration
	small    bool
	logs     bool
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "", "`path` of the program to attack; built from this tree if not set")
	flag.StringVar(&s.only, "only", "", "comma-separated `attacks`, or beginnings of their names; all if not set")
	flag.StringVar(&s.json, "json", "", "`file` to write the results to as JSON")
	flag.StringVar(&s.dir, "dir", "", "`folder` for the stores (default: the system's temporary one)")
	flag.StringVar(&s.store, "store", "sqlite", "`kind` of store: sqlite, or postgres")
	flag.DurationVar(&s.duration, "duration", 4*time.Second, "`time` that each attack takes")
	flag.BoolVar(&s.small, "small", false, "with fewer connections and requests")
	flag.BoolVar(&s.logs, "logs", false, "show what the gateways log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	broken, err := run(ctx, s, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	case broken > 0:
		os.Exit(1)
	}
}

// run makes the attacks one after the other, and returns how many broke a bound.
func run(ctx context.Context, s settings, out io.Writer) (broken int, err error) {
	chosen, err := choose(s)
	if err != nil {
		return 0, err
	}
	rn, err := openRunner(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rn.Close()) }()
	results := make([]result, 0, len(chosen))
	fmt.Fprint(out, tableHead)
	for _, a := range chosen {
		r, err := rn.play(ctx, a)
		if err == nil && len(r.Broken) > 0 && r.Genuine.HeldUp > 0 {
			r, err = rn.play(ctx, a) // the machine had no time for the sender: once more
		}
		if ctx.Err() != nil {
			return broken, context.Cause(ctx)
		}
		if err != nil {
			r.Broken = append(r.Broken, err.Error())
		}
		if len(r.Broken) > 0 {
			broken++
		}
		fmt.Fprint(out, r.row())
		results = append(results, r)
	}
	if s.json == "" {
		return broken, nil
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return broken, err
	}
	return broken, os.WriteFile(s.json, append(data, '\n'), 0o644)
}

// choose returns the attacks that are asked for. Those on files need a file.
func choose(s settings) ([]attack, error) {
	all := slices.DeleteFunc(slices.Clone(attacks), func(a attack) bool { return a.sqlite && s.store != "sqlite" })
	if s.only == "" {
		return all, nil
	}
	var chosen []attack
	for name := range strings.SplitSeq(s.only, ",") {
		before := len(chosen)
		for _, a := range all {
			if strings.HasPrefix(a.name, name) {
				chosen = append(chosen, a)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no attack %q on this store", name)
		}
	}
	return chosen, nil
}

// build makes the program of this tree.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "hookonce")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/hookonce/hookonce/cmd/hookonce")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // without the race detector, which has memory of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
