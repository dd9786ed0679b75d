package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// What a destination is shown as, and for how many of its gateways it is so.
func TestStanding(t *testing.T) {
	soon, long := time.Now().Add(time.Second), time.Now().Add(-time.Minute)
	ill := func(probe *time.Time) api.Health {
		return api.Health{State: "ill", Since: &long, Probe: probe, Error: "connection refused"}
	}
	healthy, recovering := api.Health{State: "healthy"}, api.Health{State: "recovering", Limit: 7}
	for want, c := range map[string]struct {
		d    api.Destination
		each []api.Health
	}{
		"not configured": {},
		"paused":         {d: api.Destination{Configured: true, Pause: &api.Pause{}}},
		"delivering":     {d: api.Destination{Configured: true, Health: &healthy}, each: []api.Health{healthy, healthy}},
		"recovering, 7 at once, in 1 of 2 gateways": {d: api.Destination{Configured: true, Health: &recovering}, each: []api.Health{healthy, recovering}},
		"ill since " + clock(long) + ", next probe " + clock(soon) + ": connection refused": {
			d: api.Destination{Configured: true, Health: func() *api.Health { h := ill(&soon); return &h }()}, each: []api.Health{ill(&soon)}},
		"ill since " + clock(long) + ", tried again with the next event: connection refused, in 1 of 3 gateways": {
			d: api.Destination{Configured: true, Health: func() *api.Health { h := ill(&long); return &h }()}, each: []api.Health{ill(&long), healthy, healthy}},
	} {
		for _, h := range c.each {
			c.d.Gateways = append(c.d.Gateways, api.Stand{Health: h})
		}
		if got := standing(&c.d); got != want {
			t.Errorf("got %q, want %q", got, strings.TrimSpace(want))
		}
	}
}
