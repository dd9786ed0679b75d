// Package racetest keeps from the race detector what it has nothing to see in and what takes several times as long under it.
package racetest

import "testing"

// Skip skips a test under the race detector: one that only computes, or whose goroutines take turns that other tests of its
// package take, too, such as a suite's on one more kind of connection. It is the first statement of the test, whose name
// scripts/unraced looks for: make test runs these tests beside the rest, without the detector.
func Skip(t testing.TB) {
	t.Helper()
	if watched {
		t.Skip("the race detector has nothing new to see in it: make test runs it without")
	}
}
