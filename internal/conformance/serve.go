package conformance

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"
)

// Serve runs the suites of the target that it reads from in, writes what package testing says of them to standard output,
// and ends the process. It ends when in does, because then nobody cleans up after it any more.
func Serve(in io.Reader) {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	var target Target
	if err == nil {
		err = json.Unmarshal(line, &target)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "this command is run by `hookonce doctor --conformance` alone:", err)
		os.Exit(exitUsage)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		os.Exit(exitUsage)
	}()
	os.Args = []string{os.Args[0], "-test.v=test2json", "-test.parallel=4", "-test.run=" + target.Cases}
	testing.Init()
	flag.Parse()
	for name, value := range map[string]string{"rapid.nofailfile": "true"} { // nothing is left in the working folder
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	testing.Main(matcher(), suitesOf(target), nil, nil)
}

const exitUsage = 2

// matcher is that of go test: package testing asks it for each part of a name.
func matcher() func(pattern, name string) (bool, error) {
	known := map[string]*regexp.Regexp{}
	return func(pattern, name string) (bool, error) {
		if known[pattern] == nil {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return false, err
			}
			known[pattern] = re
		}
		return known[pattern].MatchString(name), nil
	}
}

// suite is a test in which the cases of a suite are run.
type suite struct {
	name string
	run  func(t *testing.T)
}

// suitesOf are the tests for the target.
func suitesOf(target Target) (tests []testing.InternalTest) {
	var all []suite
	switch target.Kind {
	case Postgres:
		all = postgresSuites(target)
	case MySQL:
		all = mysqlSuites(target)
	case SQLite:
		all = sqliteSuites(target)
	case Redis:
		all = redisSuites(target)
	}
	for _, s := range all {
		tests = append(tests, testing.InternalTest{Name: s.name, F: func(t *testing.T) {
			t.Parallel()
			s.run(t)
		}})
	}
	return tests
}

// patience bounds what a check of the engine waits for.
const patience = 20 * time.Second
