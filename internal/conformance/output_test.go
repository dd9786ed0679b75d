package conformance

import (
	"slices"
	"strings"
	"testing"
)

// The lines are those that package testing writes with -test.v=test2json, for tests that run beside each other.
func TestOutputIsReadByCase(t *testing.T) {
	const text = `noise
%=== RUN   one
%=== RUN   one/group
%=== RUN   one/group/a_case
    claim.go:12: half a line%=== PAUSE one/group/a_case
%=== RUN   two
%=== NAME  one/group/a_case
    claim.go:13: the rest
%    --- FAIL: one/group/a_case (0.02s)
%=== RUN   one/group/fine
fine.go:1: talk
%    --- PASS: one/group/fine (1.50s)
%=== RUN   one/group/not_here
    skip.go:1: the engine has no such thing
%    --- SKIP: one/group/not_here (0.00s)
%    --- FAIL: one/group (1.52s)
%=== NAME  one
    fixture.go:9: 1 connections were not given back
%--- FAIL: one (1.52s)
%=== NAME  two
it hangs here
`
	var o output
	var got []Case
	for line := range strings.Lines(strings.ReplaceAll(text, "%", marker)) {
		if c, ended := o.line(line); ended {
			got = append(got, c)
		}
	}
	want := []Case{
		{"one/group/a case", Failed, 0.02, "claim.go:12: half a line    claim.go:13: the rest"},
		{"one/group/fine", Passed, 1.5, ""},
		{"one/group/not here", Skipped, 0, "skip.go:1: the engine has no such thing"},
		{"one", Failed, 1.52, "fixture.go:9: 1 connections were not given back"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if left := o.leaves(); !slices.Equal(left, []string{"two"}) {
		t.Errorf("running: %q", left)
	}
}
