package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
)

// What a destination is shown as, and for how many of its gateways it is so.
func TestStanding(t *testing.T) {
	soon, long := time.Now().Add(time.Minute), time.Now().Add(-time.Second)
	ill := func(probe *time.Time) fleet.Health {
		return fleet.Health{State: "ill", Since: &long, Probe: probe, Error: "connection refused"}
	}
	healthy, recovering := fleet.Health{State: "healthy"}, fleet.Health{State: "recovering", Limit: 7}
	for want, c := range map[string]struct {
		d    fleet.Destination
		each []fleet.Health
	}{
		"not configured": {},
		"paused":         {d: fleet.Destination{Configured: true, Pause: &fleet.Pause{}}},
		"delivering":     {d: fleet.Destination{Configured: true, Health: &healthy}, each: []fleet.Health{healthy, healthy}},
		"recovering, 7 at once, in 1 of 2 gateways": {d: fleet.Destination{Configured: true, Health: &recovering}, each: []fleet.Health{healthy, recovering}},
		"ill since " + clock(long) + ", next probe " + clock(soon) + ": connection refused": {
			d: fleet.Destination{Configured: true, Health: func() *fleet.Health { h := ill(&soon); return &h }()}, each: []fleet.Health{ill(&soon)}},
		"ill since " + clock(long) + ", tried again with the next event: connection refused, in 1 of 3 gateways": {
			d: fleet.Destination{Configured: true, Health: func() *fleet.Health { h := ill(&long); return &h }()}, each: []fleet.Health{ill(&long), healthy, healthy}},
	} {
		for _, h := range c.each {
			c.d.Gateways = append(c.d.Gateways, fleet.Stand{Health: h})
		}
		if got := standing(&c.d); got != want {
			t.Errorf("got %q, want %q", got, strings.TrimSpace(want))
		}
	}
}

// A try whose time has passed is said by what it waits for.
func TestNextTry(t *testing.T) {
	now := time.Now()
	soon, past := now.Add(time.Minute), now.Add(-time.Minute)
	for want, d := range map[string]api.Delivery{
		"":                   {},
		clock(soon):          {NextTry: &soon},
		"when it is resumed": {NextTry: &past, WaitsFor: fleet.WaitsForResume},
		"not while the destination is not configured":       {NextTry: &past, WaitsFor: fleet.WaitsForConfiguration},
		"when a probe succeeds, the next at " + clock(soon): {NextTry: &soon, WaitsFor: fleet.WaitsForProbe},
		"as a probe, or when one succeeds":                  {NextTry: &past, WaitsFor: fleet.WaitsForProbe},
		"now":                                               {NextTry: &past},
	} {
		if got := nextTry(d.Next(now)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
