package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
)

// said has another gateway tell how it finds its destinations, some time ago.
func (r *rig) said(id string, ago time.Duration, targets ...fleet.Target) {
	r.Helper()
	view, err := json.Marshal(targets)
	if err != nil {
		r.Fatal(err)
	}
	g := journal.Gateway{ID: id, Host: "web-" + id, PID: 8, Version: "test", Since: now.Add(-time.Hour), Seen: now.Add(-ago), View: view}
	if err := r.model.Announce(r.Context(), g, time.Time{}); err != nil {
		r.Fatal(err)
	}
}

// A destination stands as the gateway finds it that finds it worst, and what is held is counted in all of them, but
// not in one that is gone.
func TestFleet(t *testing.T) {
	r := newRig(t)
	sooner, later := now.Add(time.Second), now.Add(time.Minute)
	at := func(state string, probe *time.Time) fleet.Health {
		return fleet.Health{State: state, Probe: probe, Limit: 10}
	}
	r.said("2", time.Second,
		fleet.Target{Name: "app", URL: "http://127.0.0.1:5000/", Health: at("ill", &sooner), Waiting: 5, Underway: 1},
		fleet.Target{Name: "audit", Health: at("recovering", nil), Waiting: 7},
		fleet.Target{Name: "theirs", URL: "http://127.0.0.1:6000/", Ordered: true, Health: at("ill", &later), Waiting: 1})
	r.said("3", fleet.Gone, fleet.Target{Name: "audit", Health: at("healthy", nil), Underway: 2}, fleet.Target{Name: "theirs", Health: at("ill", &sooner)})
	r.said("4", fleet.Gone+time.Millisecond, fleet.Target{Name: "audit", Health: at("ill", &sooner), Waiting: 100}, fleet.Target{Name: "gone", Health: at("healthy", nil)})
	if err := r.model.Announce(t.Context(), journal.Gateway{ID: "5", Since: now, Seen: now, View: []byte("from the future")}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	var list fleet.DestinationList
	text, _ := json.Marshal(r.get("/api/v1/destinations"))
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Destinations {
		probe := ""
		if d.Health.Probe != nil {
			probe = d.Health.Probe.Format(" 15:04:05")
		}
		got = append(got, fmt.Sprint(d.Name, " ", d.URL, " ", d.Order, " ", d.Health.State, probe, " ", d.Health.Limit, " ", d.Waiting, " ", d.Underway, " ", len(d.Gateways)))
	}
	for _, g := range list.Gateways {
		got = append(got, fmt.Sprint(g.ID, " ", g.Gone, " ", g.Answers))
	}
	want := []string{
		"app http://127.0.0.1:3000/ none ill 12:00:01 11 5 1 2",
		"audit http://127.0.0.1:4000/ by_resource recovering 84 7 2 3",
		"theirs http://127.0.0.1:6000/ by_resource ill 12:00:01 20 1 0 2",
		"2 false false", "3 false false", "4 true false", "5 false false", "self false true",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	r.post("/api/v1/destinations/theirs/pause", map[string]any{"reason": "x"}, 200)
	r.post("/api/v1/destinations/nobody/pause", map[string]any{"reason": "x"}, 404)
}

// Of a delivery whose time has come an event says what it waits for.
func TestWaitsFor(t *testing.T) {
	r := newRig(t)
	later := r.accept("later", journal.Failed)
	r.accept("due", journal.Pending, func(e *journal.Record) {
		e.Destinations = []string{"app", "audit", "nobodys", "paused"}
	})
	r.said("2", time.Second, fleet.Target{Name: "paused", Health: fleet.Health{State: "ill"}})
	r.post("/api/v1/destinations/paused/pause", map[string]any{"reason": "x"}, 200)

	told := func(path string) string {
		var e api.Detail
		text, _ := json.Marshal(r.get(path))
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, d := range e.Deliveries {
			next := d.Next(now)
			all = append(all, fmt.Sprint(d.Destination, ": ", next.Words, " ", d.NextTry.Sub(now)))
		}
		return strings.Join(all, "\n")
	}
	want := "app: when a probe succeeds, the next at 4s\naudit: now 0s\nnobodys: not while the destination is not configured 0s\npaused: when it is resumed 0s"
	if got := told("/api/v1/events/billing/due"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := told(fmt.Sprint("/api/v1/events/", later)); got != "app:  1h0m0s" {
		t.Errorf("what is due later: %q", got)
	}
}
