package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/conformance"
)

// suitesCommand is what doctor runs in a process of its own.
const suitesCommand = "suites"

func newSuitesCommand(w *env) *cobra.Command {
	return &cobra.Command{
		Use:    suitesCommand,
		Short:  "Run the suites that --conformance asks for; doctor starts it",
		Hidden: true,
		Args:   noArgs,
		Run:    func(*cobra.Command, []string) { conformance.Serve(w.in) },
	}
}

// conform runs the conformance suites against an engine and prints what came of them.
func conform(w *env, c *cobra.Command, redis, cases string, asJSON bool) error {
	target, err := targetOf(w, c, redis)
	if err != nil {
		return err
	}
	target.Cases = cases
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(c.Context(), w, nil, nil)
	defer stop()
	log := w.out
	if asJSON {
		log = w.err
	}
	report, failure := conformance.Examine(ctx, target, conformance.Options{
		Command: []string{program, "doctor", suitesCommand}, Version: version(),
		Ended: func(c conformance.Case) {
			if !asJSON || c.Result == conformance.Failed || isTerminal(log) {
				printCase(log, c)
			}
		},
	})
	if report == nil {
		return failure
	}
	printConformance(log, report)
	if asJSON {
		if err := printJSON(w, report); err != nil {
			return err
		}
	}
	if failure == nil && !report.Conforms() {
		failure = errors.New("the engine does not conform: do not keep claims there before what failed is understood")
	}
	return failure
}

// targetOf is the engine that the flags name, and nothing else does: no configuration is read.
func targetOf(w *env, c *cobra.Command, redis string) (t conformance.Target, err error) {
	store, given := c.Flags().Lookup("store"), c.Flags().Changed("store")
	if given == (redis != "") {
		return t, &usageError{c.CommandPath(), errors.New("--conformance tries one engine: name it with --store (postgres://, mysql:// or sqlite:), or with --redis")}
	}
	text := redis
	if given {
		text = written(store)
	}
	if text, err = dereference(w, text); err != nil {
		return t, err
	}
	if t, err = conformance.Parse(text); err != nil {
		return t, &usageError{c.CommandPath(), err}
	}
	if schema := c.Flags().Lookup("schema"); schema.Changed {
		t.Name = written(schema)
	}
	return t, nil
}

// written is what somebody wrote for the flag.
func written(f *pflag.Flag) string { return f.Value.String() }

func printCase(to io.Writer, c conformance.Case) {
	fmt.Fprintf(to, "%-8s %s (%.2fs)\n", c.Result, clean(c.Name), c.Seconds)
	for line := range strings.Lines(c.Reason) {
		fmt.Fprintf(to, "%-8s %s\n", "", clean(strings.TrimSpace(line)))
	}
}

func printConformance(to io.Writer, r *conformance.Report) {
	fmt.Fprintf(to, "\n%s\nhookonce %s on %s, %s\n", clean(r.Engine), r.Hookonce, r.Kind, clock(r.Date))
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped in %v\n", r.Passed, r.Failed, r.Skipped, (time.Duration(r.Seconds*1000) * time.Millisecond).Round(time.Second/10))
	if r.Pattern != "" {
		fmt.Fprintf(to, "only cases that match %q were run\n", r.Pattern)
	}
	if r.Aborted != "" {
		fmt.Fprintf(to, "cases are missing at the end: %s\n", clean(r.Aborted))
	}
	for _, c := range r.Cases {
		if c.Result == conformance.Failed {
			fmt.Fprintf(to, "failed: %s\n", clean(c.Name))
		}
	}
}
