//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain plays a part when the program is started as its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		main()
	}
	os.Exit(m.Run())
}

// A row that fails says why, in its child's own words; it is tried again once, the others go on, and the report has both.
func TestFailedRowLosesNothing(t *testing.T) {
	chosen, err := choose("a", false)
	if err != nil {
		t.Fatal(err)
	}
	chosen = append([]row{
		{id: "x1", kind: "nobody", store: "none", load: freshEvents},
		{id: "x2", kind: "hand-postgres", store: "none", load: freshEvents},
		{id: "x3", kind: "baseline-sqlite", store: "none", load: noRequests},
	}, chosen...)
	rn := &runner{
		options: options{rounds: 1, duration: 50 * time.Millisecond, warmup: 10 * time.Millisecond, conns: 2},
		stores:  map[string]string{"x2": "postgres://127.0.0.1:1/nothing?connect_timeout=1"},
		samples: map[string][]sample{},
	}
	err = rn.rowsInTurns(t.Context(), chosen)
	if err == nil {
		t.Fatal("three rows cannot work, and no error came")
	}
	for _, want := range []string{`there is no server "nobody"`, "row x2, round 1: ", "failed to connect", "row x3, round 1: baseline-sqlite: exit status 1: failed: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if len(rn.samples["a"]) != 1 || len(rn.again) != 6 || len(rn.running) != 0 {
		t.Errorf("%d samples of the row that works, %d failures on record, %d processes left", len(rn.samples["a"]), len(rn.again), len(rn.running))
	}
	var out strings.Builder
	r := newReport(rn.options, chosen, rn.samples)
	r.Again = rn.again
	if err := r.markdown(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `- failed, and was tried again once: row x1, round 1: it did not start: nobody: exit status 1: failed: there is no server "nobody"`) {
		t.Errorf("the report says nothing of it:\n%s", out.String())
	}
}

// A child that is killed in the middle says what it had written to standard error.
func TestLastWordsOfTheKilled(t *testing.T) {
	p, err := startProcess("sink", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.log.WriteString("level=ERROR msg=\"the last line\"\n"); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if _, err := p.end(); err == nil || !strings.Contains(err.Error(), "sink: signal: killed: level=ERROR msg=\"the last line\"") {
		t.Errorf("it says %v", err)
	}
}
