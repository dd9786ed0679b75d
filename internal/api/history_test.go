package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// What was counted is told by the minute and by the hour, as far as it is asked for.
func TestHistory(t *testing.T) {
	r := newRig(t)
	point := func(ago time.Duration, source string, what tally.What, n int64) tally.Point {
		p := tally.Point{Minute: now.Add(-ago).Truncate(time.Minute), Source: source, What: what, N: n}
		if what == tally.First {
			p.Destination = "app"
		}
		return p
	}
	if err := r.model.AddTallies(t.Context(), "p", 1, []tally.Point{
		point(time.Minute, "billing", tally.Accepted, 1), point(3*time.Minute, "billing", tally.Accepted, 2), point(time.Minute, "shop", tally.Accepted, 4),
		point(time.Minute, "billing", tally.First, 8), point(time.Minute, "billing", tally.Rejected("slow"), 16), point(25*time.Hour, "billing", tally.Accepted, 32),
		point(time.Minute, "shop", "duplicate", 64), // a program that uses the library counted that, in the same tables
	}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct{ query, want string }{
		{"", "billing//accepted 3 [11:57 2] [11:59 1], billing//rejected:slow 16 [11:59 16], billing/app/first 8 [11:59 8], shop//accepted 4 [11:59 4]"},
		{"?what=accepted&total=true", "//accepted 7 [11:57 2] [11:59 5]"},
		{"?what=rejected:*,first&source=billing", "billing//rejected:slow 16 [11:59 16], billing/app/first 8 [11:59 8]"},
		{"?destination=app", "billing/app/first 8 [11:59 8]"},
		{"?from=2026-11-21T11:59:30Z&what=accepted&source=billing", "billing//accepted 1 [11:59 1]"},
		{"?until=2026-11-21T11:59:00Z", "billing//accepted 2 [11:57 2]"},
		{"?step=hour&what=accepted", "billing//accepted 35 [11:00 32] [11:00 3], shop//accepted 4 [11:00 4]"},
		{"?source=billing&from=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z", ""},
	} {
		var got []string
		for _, s := range r.get("/api/v1/history" + q.query)["series"].([]any) {
			one := s.(map[string]any)
			text := func(name string) string { s, _ := one[name].(string); return s }
			line := fmt.Sprintf("%s/%s/%s %v", text("source"), text("destination"), text("what"), one["sum"])
			for _, p := range one["points"].([]any) {
				point := p.(map[string]any)
				line += fmt.Sprintf(" [%s %v]", point["at"].(string)[11:16], point["n"])
			}
			got = append(got, line)
		}
		if got := strings.Join(got, ", "); got != q.want {
			t.Errorf("%s\n%s, want\n%s", q.query, got, q.want)
		}
	}
	for _, query := range []string{
		"?what=nothing", "?what=duplicate", "?what=accepted,*x", "?step=day", "?from=2026-11-21T12:00:00Z&until=2026-11-21T11:00:00Z", "?source=%00", "?from=-0001-01-01T00:00:00Z", "?other=1",
	} {
		r.expect(request("GET", "/api/v1/history"+query, nil), 422)
	}
}

// An answer that would be too large says what to ask for instead.
func TestHistoryIsBounded(t *testing.T) {
	r := newRig(t)
	var points []tally.Point
	for i := range 50_001 {
		points = append(points, tally.Point{Minute: now.Add(-time.Minute), Source: fmt.Sprint(i), What: tally.Received, N: 1})
	}
	if err := r.model.AddTallies(t.Context(), "p", 1, points); err != nil {
		t.Fatal(err)
	}
	r.expect(request("GET", "/api/v1/history", nil), 422)
	if n := len(r.get("/api/v1/history?total=true")["series"].([]any)); n != 1 {
		t.Errorf("the total has %d series", n)
	}
}

// Whoever asks about a source that there is not would take an empty answer for a calm source. One of which something is on record
// is answered, configured or not.
func TestUnknownSource(t *testing.T) {
	r := newRig(t)
	const says = `this gateway has no source "nobody"; it has billing`
	for _, path := range []string{"/history?source=nobody", "/events?source=nobody", "/tail?source=nobody"} {
		if got := fmt.Sprint(r.expect(request("GET", "/api/v1"+path, nil), 422)); !strings.Contains(got, "query.source") || !strings.Contains(got, says) {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/sources/nobody/missing", "/sources/nobody/refusals"} {
		if got := fmt.Sprint(r.expect(request("GET", "/api/v1"+path, nil), 404)); !strings.Contains(got, says) {
			t.Errorf("%s: %s", path, got)
		}
	}
	replay := map[string]any{"filter": map[string]any{"source": "nobody"}, "reason": "why", "dry_run": true}
	if got := fmt.Sprint(r.expect(request("POST", "/api/v1/replay", replay), 422)); !strings.Contains(got, "body.filter.source") || !strings.Contains(got, says) {
		t.Errorf("a replay: %s", got)
	}
	for _, path := range []string{"/history", "/history?source=billing", "/events", "/events?source=billing"} {
		r.get("/api/v1" + path)
	}
	r.accept("evt_1", journal.Dead, func(e *journal.Record) { e.Event.Source = "former" })
	if err := r.model.AddTallies(t.Context(), "p", 1, []tally.Point{{Minute: now.Add(-time.Minute), Source: "former", What: tally.Accepted, N: 1}}); err != nil {
		t.Fatal(err)
	}
	for path, list := range map[string]string{"/history?source=former": "series", "/events?source=former": "events"} {
		if n := len(r.get("/api/v1" + path)[list].([]any)); n != 1 {
			t.Errorf("%s: %d %s of a source that is not configured any more", path, n, list)
		}
	}
	replay["filter"] = map[string]any{"source": "former"}
	if got := r.expect(request("POST", "/api/v1/replay", replay), 200); got["events"] != 1.0 {
		t.Errorf("a replay of a source that is not configured any more: %v", got)
	}
}
