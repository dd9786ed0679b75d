package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// What was open and is not any more leaves a count of 0 and no age.
func TestTheBacklogOfDestinations(t *testing.T) {
	m, reg := newBacklogMetrics(), prometheus.NewRegistry()
	reg.MustRegister(m.open, m.oldest)
	at := time.Unix(1700000000, 0)
	day := 24 * time.Hour
	m.set([]journal.OpenCount{{Destination: "app", State: journal.Failed, Count: 3, Oldest: at, Since: at}, {Destination: "audit", State: journal.Dead, Count: 1, Oldest: at, Since: at}}, at)
	m.set([]journal.OpenCount{
		{Destination: "ahead", State: journal.Pending, Count: 2, Oldest: at.Add(day), Since: at},                                    // by its clock, and replayed
		{Destination: "ahead", State: journal.Failed, Count: 1, Oldest: at.Add(30 * time.Minute), Since: at.Add(-20 * time.Minute)}, // by clocks that differ a little
		{Destination: "app", State: journal.Failed, Count: 2, Oldest: at.Add(-day), Since: at.Add(-time.Hour)},
		{Destination: "app", State: journal.Pending, Count: 2, Oldest: at.Add(-day), Since: at.Add(2 * time.Hour)}, // due by a replay only then
	}, at)
	const want = `
# HELP hookonce_journal_backlog Deliveries that are not done, by destination and state.
# TYPE hookonce_journal_backlog gauge
hookonce_journal_backlog{destination="ahead",state="failed"} 1
hookonce_journal_backlog{destination="ahead",state="pending"} 2
hookonce_journal_backlog{destination="app",state="failed"} 2
hookonce_journal_backlog{destination="app",state="pending"} 2
hookonce_journal_backlog{destination="audit",state="dead"} 0
# HELP hookonce_journal_backlog_oldest_timestamp_seconds Since when the one waits that waits longest: since its event was accepted or, if it was dead or done and is replayed, since it was due; missing where there is none.
# TYPE hookonce_journal_backlog_oldest_timestamp_seconds gauge
hookonce_journal_backlog_oldest_timestamp_seconds{destination="ahead",state="failed"} 1.6999988e+09
hookonce_journal_backlog_oldest_timestamp_seconds{destination="ahead",state="pending"} 1.7000864e+09
hookonce_journal_backlog_oldest_timestamp_seconds{destination="app",state="failed"} 1.6999964e+09
hookonce_journal_backlog_oldest_timestamp_seconds{destination="app",state="pending"} 1.7e+09
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// A destination that is paused no more has no time since when it is.
func TestPausedDestinations(t *testing.T) {
	m, reg := newMetrics(tally.NewRegistry(time.Now)), prometheus.NewRegistry()
	reg.MustRegister(m.paused)
	at := time.Unix(1700000000, 0)
	m.pauses([]journal.Pause{{Destination: "app", At: at}, {Destination: "audit", At: at}}, nil)
	m.pauses([]journal.Pause{{Destination: "audit", At: at}}, map[string]bool{"app": true, "audit": true})
	const want = `
# HELP hookonce_paused_timestamp_seconds When an operator paused the destination; missing where none is paused.
# TYPE hookonce_paused_timestamp_seconds gauge
hookonce_paused_timestamp_seconds{destination="audit"} 1.7e+09
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
