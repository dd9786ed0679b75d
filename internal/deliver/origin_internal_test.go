package deliver

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// A delivery may have an origin that a later version stored. Its first attempt counts like that of an event that came
// for the first time.
func TestOriginOfALaterVersion(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry(), tally.NewRegistry(time.Now))
	for _, origin := range []journal.Origin{journal.OriginReplayed, journal.OriginReconciled, journal.OriginReconciled + 1, -1} {
		m.observe(&journal.Work{Held: journal.Held{Destination: "app"}, Source: "billing", Tries: 1, Origin: origin}, journal.Outcome{State: journal.Done}, nil)
	}
	for label, want := range map[string]float64{"fresh": 2, "redriven": 0, "replayed": 1, "reconciled": 1} {
		if got := testutil.ToFloat64(m.firsts.WithLabelValues("billing", "app", label)); got != want {
			t.Errorf("%s: %v, want %v", label, got, want)
		}
	}
}
