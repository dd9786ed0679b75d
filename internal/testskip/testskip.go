// Package testskip says which tests make test and make race take apart: what the race detector has nothing to see in, and what
// takes longer than somebody waits for before a commit.
package testskip

import (
	"os"
	"testing"
)

// Variable is set, to anything, where tests that say Long are skipped: by make test.
const Variable = "HOOKONCE_TEST_SKIPS_LONG"

// Race skips a test under the race detector: one that only computes, or whose goroutines take turns that other tests of its
// package take, too, such as a suite's on one more kind of connection. make test and make race run it without. It is what the
// test begins with, for scripts/unraced to find the test's name.
func Race(t testing.TB) {
	t.Helper()
	if watched {
		t.Skip("the race detector has nothing new to see in it: it is run without")
	}
}

// Long skips a test in make test, which is run before every commit: one that takes many seconds of two cores, and best one that
// has a quicker neighbour, which would see the first sign of the same fault. make ci runs it, and so does go test of its package. A test
// begins with it, or with Race and it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		t.Skip("make test has no time for it: make ci runs it")
	}
}
