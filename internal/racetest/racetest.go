// Package racetest keeps from the race detector what it has nothing to see in and what takes several times as long under it.
package racetest

import "testing"

// Skip skips a test under the race detector: one that only computes, or whose goroutines take turns that other tests of its
// package take, too. Make test runs the packages whose tests say so a second time, without the detector.
func Skip(t testing.TB) {
	t.Helper()
	if watched {
		t.Skip("it only computes: make test runs it without the race detector")
	}
}
