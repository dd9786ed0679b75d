package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/overview"
)

// Copies are held against what is known of their sender, and only those that are later are told as such.
func TestCopiesAgainstTheirSender(t *testing.T) {
	const hour, day = int64(3600), 24 * time.Hour
	received := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		from  *api.Source
		age   time.Duration
		says  string
		isBad bool
	}{
		{"both windows", &api.Source{Provider: "stripe", SendsAgain: 72 * hour, SentOnDemand: 720 * hour}, 5 * day, "stripe sends an event again for 3\u00a0d by itself, and for 30\u00a0d when", false},
		{"past both", &api.Source{Provider: "stripe", SendsAgain: 72 * hour, SentOnDemand: 720 * hour}, 34 * day, "34\u00a0d after the first. By what is known, stripe", true},
		{"in its own", &api.Source{Provider: "shopify", SendsAgain: 4 * hour}, 4*time.Hour + 25*time.Minute, "4\u00a0h\u00a025\u00a0min after the first. By what is known, shopify sends an event again for 4\u00a0h by itself.", false},
		{"past its own", &api.Source{Provider: "shopify", SendsAgain: 4 * hour}, 4*time.Hour + 26*time.Minute, "by itself.", true},
		{"on demand alone", &api.Source{Provider: "github", SentOnDemand: 72 * hour}, day, "asks for it, and not by itself.", false},
		{"a specification of one's own", &api.Source{Provider: "custom", SendsAgain: hour}, 2 * time.Hour, "its sender sends an event again for 1\u00a0h", true},
		{"nothing is known", &api.Source{Provider: "hmac"}, 400 * day, "after the first.", false},
		{"not configured any more", nil, 400 * day, "after the first.", false},
	} {
		e := api.Detail{Event: api.Event{ReceivedAt: received, Key: "k"}, Sightings: []api.Sighting{
			{Kind: "duplicate", First: received.Add(time.Second), Last: received.Add(c.age), Copies: 2}}}
		says, copies := whenCopiesCame(&e, c.from), timeline(&e, c.from)[1]
		if !strings.Contains(says, c.says) || !strings.HasPrefix(says, "The last copy came ") || copies.Failed != c.isBad || (copies.Detail != "") != c.isBad {
			t.Errorf("%s: %q, %+v", c.name, says, copies)
		}
	}
	if says := whenCopiesCame(&api.Detail{}, nil); says != "" {
		t.Errorf("without copies: %q", says)
	}
}

// Only whole bins that lie beyond an age count as later.
func TestCopiesLaterThan(t *testing.T) {
	w := frame.NewWeek(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	for word, n := range map[string]int64{"age:1d": 1, "age:3d": 10, "age:7d": 100, "age:30d": 1000, "age:longer": 10000} {
		w.Add(word, w.From, n)
	}
	for age, want := range map[time.Duration]float64{24 * time.Hour: 11110, 72 * time.Hour: 11100, 73 * time.Hour: 11000, 31 * 24 * time.Hour: 0} {
		if n := w.Later(age); n != want {
			t.Errorf("later than %s came %v, want %v", age, n, want)
		}
	}
}

// Of three new events and one that came again, one is a quarter of what came, and not one of four events that came again.
func TestCameAgainIsToldApartFromWhatWasNew(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	w := frame.NewWeek(now)
	for word, n := range map[string]int64{"accepted": 2, "unkeyed": 1, "reseen": 1} {
		w.Add(word, now, n)
		w.Add(word, w.From, n)
	}
	const says = "In the last 24 hours 3\u00a0events were new and 1 came again, 25 % of both"
	c := w.CameAgain()
	if c.Value != "25 %" || c.Summary != says+"; 25 % in 7 days, drawn in pieces of 6 hours." || c.Points[0].Value != 0.25 {
		t.Errorf("%s: %s, %+v", c.Value, c.Summary, c.Points[0])
	}
	v := nowView{Overview: api.Overview{Snapshot: overview.Snapshot{Numbers: overview.Numbers{Events: 4, Reseen: 1, ReseenCounts: make([]float64, frame.WeekHours)}}}}
	if charts := v.Charts(); len(charts) != 1 || charts[0].Value != c.Value || charts[0].Summary != says+". Seven days, drawn in pieces of 6 hours." {
		t.Errorf("%+v", charts)
	}
}
