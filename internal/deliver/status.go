package deliver

import (
	"cmp"
	"slices"
	"time"
)

// Status is how a destination stands at the moment, in this process.
type Status struct {
	Name  string
	State State
	// Since is when the state began, Cause the error that made it ill, Until when an ill one is tried again at the
	// latest. Since is zero for a healthy one, and the others are for any that is not ill.
	Since, Until time.Time
	Cause        string
	// Limit is how many attempts may be under way at once, at the moment.
	Limit int
	// Waiting deliveries are held for their turn, Underway are being attempted.
	Waiting, Underway int
}

// Destinations returns how every destination stands, by name. Safe for concurrent use.
func (d *Deliverer) Destinations() []Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]Status, 0, len(d.lanes))
	for _, l := range d.lanes {
		if s, ok := l.status(); ok {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// status reports false for a destination that is gone.
func (l *lane) status() (Status, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.health
	s := Status{Name: l.name, State: h.state, Limit: min(h.limit, l.concurrency), Waiting: l.queue.len, Underway: l.underway}
	if h.state != Healthy {
		s.Since = h.since
	}
	if h.ill() {
		s.Cause, s.Until = h.cause, h.until
	}
	return s, !l.gone
}

// number is the state as the metrics have it.
func (s State) number() float64 {
	return map[State]float64{Healthy: 0, Recovering: 1, Ill: 2}[s]
}

// paused reports whether an operator wants nothing to begin.
func (l *lane) paused() bool { return l.opt.Paused != nil && l.opt.Paused(l.name) }
