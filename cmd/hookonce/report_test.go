package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/observe"
)

// TestReportNamesTheClock: requests whose time alone was wrong are neither forged nor what no sender
// sends, and where nobody knows their events nothing is said to be neither lost nor done twice.
func TestReportNamesTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		forged    observe.Tally
		has, none []string
	}{
		"late alone": {nil, []string{
			"LATE       3 requests had a valid signature whose time was out of tolerance (timestamp_future 1, timestamp_old 2): ",
			"Compare the clock of this machine",
			"\n4 requests were none that a provider sends (method 4).\n",
			"what 3 requests were is not known",
		}, []string{"FORGED", "nothing was done twice", "nothing was lost"}},
		"late and forged": {observe.Tally{hookonce.ReasonSignatureMismatch: 5}, []string{
			"LATE       3 requests", "FORGED     5 requests had no valid signature (signature_mismatch 5); ",
		}, []string{"Not one request had a valid signature"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &observe.Report{
				Source: "billing", Since: time.Now(), Requests: 12, Forged: c.forged,
				Other: observe.Tally{hookonce.ReasonTimestampOld: 2, hookonce.ReasonTimestampFuture: 1, observe.ReasonMethod: 4},
			}
			if err := printReport(&env{out: &out}, &config.Config{}, r); err != nil {
				t.Fatal(err)
			}
			for _, text := range c.has {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it lacks %q", text)
				}
			}
			for _, text := range c.none {
				if strings.Contains(out.String(), text) {
					t.Errorf("it has %q", text)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}
