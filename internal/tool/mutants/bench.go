package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bench runs tests with a fault, or with none.
type bench struct {
	dir   string // for what it writes
	limit time.Duration
}

// survivor is the error of a test that passes in spite of a fault.
type survivor struct{ output string }

func (s *survivor) Error() string { return "the test passes" }

// sound makes sure that the tests pass as long as nothing is wrong: a test that always fails would see every fault.
func (b bench) sound(ctx context.Context, chosen []mutant) error {
	runs := map[string][]string{}
	for _, m := range chosen {
		for _, k := range m.Kills {
			if !slices.Contains(runs[k.Package], k.Run) {
				runs[k.Package] = append(runs[k.Package], k.Run)
			}
		}
	}
	for pkg, patterns := range runs {
		program, err := b.compile(ctx, pkg, "")
		if err != nil {
			return err
		}
		for _, run := range patterns {
			out, err := b.test(ctx, program, test{pkg, run}, "")
			if err != nil {
				return fmt.Errorf("%s %s: %w\n%s", pkg, run, err, tail(out))
			}
		}
	}
	return nil
}

// try plants a fault and runs a test, and returns the first thing that the test said of it.
func (b bench) try(ctx context.Context, m mutant, k test) (seen string, err error) {
	overlay, err := b.overlay(m)
	if err != nil {
		return "", err
	}
	program, err := b.compile(ctx, k.Package, overlay)
	if err != nil {
		return "", err
	}
	out, err := b.test(ctx, program, k, overlay)
	b.tidy(k)
	seen, slow, err := verdict(out, err)
	if slow {
		err = b.inTime(ctx, k)
	}
	return seen, err
}

// verdict is what the end of a test with a fault means: what it said of the fault, and whether it took too long; or why nothing is
// said, such as a [survivor].
func verdict(out []byte, ended error) (seen string, slow bool, err error) {
	var failed *exec.ExitError
	switch {
	case ended == nil:
		return "", false, &survivor{tail(out)}
	case !errors.As(ended, &failed):
		return "", false, ended
	}
	seen = complaint(out)
	return seen, failed.ExitCode() < 0 || strings.Contains(seen, timedOut), nil
}

// timedOut is what a test program says that took longer than it may.
const timedOut = "panic: test timed out"

// inTime makes sure that a test which took too long with a fault does not without it: on a machine that is slow just now any would.
func (b bench) inTime(ctx context.Context, k test) error {
	program, err := b.compile(ctx, k.Package, "")
	if err != nil {
		return err
	}
	if out, err := b.test(ctx, program, k, ""); err != nil {
		return fmt.Errorf("it takes too long without any fault, too: %w\n%s", err, tail(out))
	}
	return nil
}

// tidy removes what random tests leave to be tried first the next time: with the fault gone it says nothing.
func (b bench) tidy(k test) {
	_ = os.RemoveAll(filepath.Join(k.Package, "testdata", "rapid")) // it is not under version control
}

// overlay writes the file that has the compiler read the fault.
func (b bench) overlay(m mutant) (string, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	text, err := m.planted(root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, m.Name+filepath.Ext(m.File))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(b.dir, m.Name+".json")
	return overlay, os.WriteFile(overlay, replace, 0o644)
}

// compile builds the tests of a package, in its folder: it may be one of another module.
func (b bench) compile(ctx context.Context, pkg, overlay string) (program string, err error) {
	program = filepath.Join(b.dir, "test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-vet=off", "-o", program, ".")
	cmd.Dir, cmd.Env = pkg, environment(overlay)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s does not compile: %w\n%s", pkg, err, tail(out))
	}
	return program, nil
}

// test runs tests of a package. What they build has the fault as well.
func (b bench) test(ctx context.Context, program string, k test, overlay string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run", k.pattern(), "-test.failfast", "-test.timeout", b.limit.String())
	cmd.Dir, cmd.Env = k.Package, environment(overlay)
	cmd.WaitDelay = 10 * time.Second // for what a killed test leaves behind
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("testing: warning: no tests to run")) {
		return out, fmt.Errorf("there is no test %s in %s", k.Run, k.Package)
	}
	return out, err
}

// environment has go read a fault, in programs that tests start as well.
func environment(overlay string) []string {
	env := os.Environ()
	if overlay != "" {
		env = append(env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return env
}

var (
	failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+).*\n(?:\s*--- FAIL.*\n)*\s*(.*)$`)
	crash   = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
)

// complaint is what the innermost test that failed said first.
func complaint(out []byte) string {
	if all := failure.FindAllSubmatch(out, -1); len(all) > 0 {
		m := all[len(all)-1]
		return cut(string(m[1]) + ": " + string(m[2]))
	}
	if m := crash.FindSubmatch(out); m != nil {
		return cut(string(m[1]))
	}
	return cut(tail(out))
}

const width = 200

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > width {
		return string(r[:width]) + " ..."
	}
	return text
}

// tail is the end of what a program said.
func tail(out []byte) string {
	const most = 4 << 10
	return string(bytes.TrimSpace(out[max(0, len(out)-most):]))
}
