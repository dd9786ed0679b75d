// Command mutants plants faults in the laws of docs/guarantees.md, one after the other, and says whether the tests that are to
// fail then do fail: make mutants. No file of the tree is touched: a fault is laid over its file for the compiler alone.
//
// The exit status is 0 if every test that a fault names has failed for it, and has passed without it; 1 if one has not; 2 if
// nothing could be said.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	os.Exit(run())
}

func run() int {
	only := flag.String("only", "", "`pattern` of the names, the laws or the files of faults; all if it is empty")
	list := flag.Bool("list", false, "show the faults and plant none")
	limit := flag.Duration("limit", 2*time.Minute, "longest time for the tests of one fault in one package; one that hangs until then has failed, unless it also does without the fault")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 2
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-32s %s\n%-32s in %s\n", m.Name, m.Law, "", m.File)
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 2
	}
	defer os.RemoveAll(dir)
	b := bench{dir: dir, limit: *limit}
	if err := b.sound(ctx, chosen); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: without any fault:", err)
		return 2
	}
	survived, broken := 0, 0
	for i, m := range chosen {
		start := time.Now()
		for _, k := range m.Kills {
			verdict, err := b.try(ctx, m, k)
			var alive *survivor
			switch {
			case errors.As(err, &alive):
				survived++
				verdict = "SURVIVED: " + err.Error()
			case ctx.Err() != nil:
				return 2
			case err != nil:
				broken++
				verdict = "not tried: " + err.Error()
			}
			fmt.Printf("%3d/%d  %-32s %-40s %s\n", i+1, len(chosen), m.Name, k.String(), verdict)
		}
		if took := time.Since(start); took > time.Minute {
			fmt.Printf("        (%v)\n", took.Round(time.Second))
		}
	}
	fmt.Printf("%d faults planted; %d tests did not see theirs, %d could not be run\n", len(chosen), survived, broken)
	switch {
	case broken > 0:
		return 2
	case survived > 0:
		return 1
	}
	return 0
}

// choose returns the faults that a pattern names.
func choose(pattern string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var chosen []mutant
	for _, m := range byLaw() {
		if re.MatchString(m.Name) || re.MatchString(m.Law) || re.MatchString(m.File) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only: no fault is named %q; -list shows them", pattern)
	}
	return chosen, nil
}
