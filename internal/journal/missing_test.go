package journal

import (
	"fmt"
	"testing"
	"time"
)

// Where there is no room, an event that the provider was asked for is counted when the mark waits for it no longer, however old
// events are at the first look.
func TestFitCountsWhatIsNotUnderWay(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lag, before time.Duration // of what the run compared, and of the event
		asked       bool
		want        int64
	}{
		"asked for":                     {time.Hour, time.Minute, true, 0},
		"asked for, with a lag of days": {72 * time.Hour, time.Minute, true, 0},
		"asked for a day ago":           {time.Hour, 24 * time.Hour, true, 1},
		"not asked for":                 {time.Hour, time.Minute, false, 1},
	} {
		f := &Finding{At: now, From: now.Add(-100 * time.Hour), Settled: now.Add(-c.lag)}
		m := MissingEvent{Key: fmt.Sprint("evt ", name), Happened: f.Settled.Add(-c.before)}
		if c.asked {
			m.Asked = now
		}
		f.Missing = []MissingEvent{m}
		none := func(string, bool) bool { return false }
		if put, beyond, _ := f.Fit("billing", none, MaxMissing); len(put) != 0 || beyond != c.want {
			t.Errorf("%s: %d on record and %d counted, want %d", name, len(put), beyond, c.want)
		}
	}
}
