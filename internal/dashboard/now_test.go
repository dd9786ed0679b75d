package dashboard

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/overview"
)

// A backlog is said to stand still where something has waited for as long as that was looked at.
func TestDrains(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	v := nowView{Overview: api.Overview{Snapshot: overview.Snapshot{At: now}}}
	for _, c := range []struct {
		name  string
		in    *float64
		waits time.Duration
		want  string
	}{
		{"it gets shorter", new(5400.0), time.Hour, "gone in 1\u00a0h\u00a030\u00a0min"},
		{"it stands still", new(0.0), 5 * time.Minute, "not getting shorter"},
		{"all of it has just come", new(0.0), 5*time.Minute - time.Second, ""},
		{"it is not known", nil, time.Hour, ""},
	} {
		came, since := now.Add(-72*time.Hour), now.Add(-c.waits) // as of what is replayed
		if got := v.Drains(overview.DestinationState{Backlog: 9, Oldest: &came, Since: &since, DrainsIn: c.in}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
