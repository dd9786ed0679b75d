// Package testskip says which tests make test takes apart: what the race detector has nothing to see in, and what takes longer
// than somebody waits for.
package testskip

import (
	"os"
	"testing"
)

// Variable is set, to anything, where tests that say Long are skipped: by make test.
const Variable = "HOOKONCE_TEST_SKIPS_LONG"

// Race skips a test under the race detector: one that only computes, or whose goroutines take turns that other tests of its
// package take, too, such as a suite's on one more kind of connection. It is the first statement of the test, whose name
// scripts/marked looks for: make test runs these tests beside the rest, without the detector.
func Race(t testing.TB) {
	t.Helper()
	if watched {
		t.Skip("the race detector has nothing new to see in it: make test runs it without")
	}
}

// Long skips a test that takes many seconds of two cores, where a quicker one of its package would see the first sign of the
// same fault: what make test leaves to make long, so that it can be run before every commit. go test, and CI, run it. Like Race
// it is the first statement of the test, for scripts/marked to find its name.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		t.Skip("make test has no time for it: make long runs it")
	}
}
