package ingest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/ingest"
)

// A source that comes answers at once, one that goes is unknown at once, and one that stays serves no
// request twice.
func TestReload_sources(t *testing.T) {
	var options ingest.Options
	g := newGate(t, func(o *ingest.Options) { options = *o })
	status := func(source string) int { return g.send(source, `{"id":"`+source+`"}`).Code }
	added := sourceTo("refunds", testProvider{})
	g.Reload([]ingest.Source{options.Sources[0], added}, nil, nil)
	for source, want := range map[string]int{"billing": 200, "refunds": 200, "orders": 404} {
		if got := status(source); got != want {
			t.Errorf("%s was answered %d, want %d", source, got, want)
		}
	}
	g.Reload(options.Sources, nil, nil)
	if got := status("orders"); got != 200 {
		t.Errorf("what is there again was answered %d", got)
	}
	if got := gather(t, g, "hookonce_received_total"); got["billing"] != 1 || got["orders"] != 1 || got["refunds"] != 1 {
		t.Errorf("received %v, want one each", got)
	}
}

// What came again of a source is forgotten with the source, and with nothing else.
func TestReload_reseen(t *testing.T) {
	var options ingest.Options
	g := newGate(t, func(o *ingest.Options) { options = *o })
	again := func(want float64) {
		t.Helper()
		g.send("billing", `{"id":"a"}`)
		if got := gather(t, g, "hookonce_reseen_events_total")["billing"]; got != want {
			t.Errorf("counted as came again %v times, want %v", got, want)
		}
	}
	again(0)
	again(1)
	g.Reload(options.Sources, nil, nil)
	again(1)
	g.Reload(options.Sources[1:], nil, nil)
	g.Reload(options.Sources, nil, nil)
	again(2)
}

// A request whose body is still on its way ends under the configuration that it began with, and what it
// takes up counts on.
func TestReload_underway(t *testing.T) {
	const maxBody, maxReading = 512 << 10, 2 << 20
	var options ingest.Options
	g := newGate(t, func(o *ingest.Options) {
		o.MaxReading = maxReading
		o.Sources[0].MaxBody, o.Sources[1].MaxBody = maxBody, maxBody
		options = *o
	})
	large := `{"id":"large","pad":"` + strings.Repeat("x", maxBody*3/4) + `"}`
	s := stallIn(t, g, maxBody, maxBody-1)
	g.Reload(options.Sources, nil, nil)
	w := g.send("billing", large)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "crowded")
	g.Reload(nil, nil, nil)
	w = s.breakOff()
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusBadRequest, "truncated") // not 404
	g.Reload(options.Sources, nil, nil)
	if w := g.send("billing", large); w.Code != http.StatusOK {
		t.Errorf("answered %d %s after the other had ended", w.Code, w.Body)
	}
}

// An unchanged rate is not granted anew; another one is.
func TestReload_rate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var options ingest.Options
	g := newGate(t, func(o *ingest.Options) {
		o.Now = func() time.Time { return now }
		o.Sources[0].Rate, o.Sources[0].Burst = 1, 2
		options = *o
	})
	taken := func() (n int) {
		for g.send("billing", `{"id":"a"}`).Code == http.StatusOK {
			n++
		}
		return n
	}
	if n := taken(); n != 2 {
		t.Fatalf("%d at first, want 2", n)
	}
	for range 5 {
		g.Reload(options.Sources, nil, nil)
	}
	if n := taken(); n != 0 {
		t.Errorf("%d after reloads that change nothing, want 0", n)
	}
	options.Sources[0].Burst = 3
	g.Reload(options.Sources, nil, nil)
	if n := taken(); n != 3 {
		t.Errorf("%d after a reload to a burst of 3", n)
	}
}
