package deliver

import (
	"cmp"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Status is how a destination stands at the moment, in this process.
type Status struct {
	Name string
	// Breaker is closed, open or half-open.
	Breaker string
	// Until is when an open breaker lets the next attempt through; zero if it is not open.
	Until time.Time
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
	s := Status{Name: l.name, Breaker: gobreaker.StateClosed.String(), Waiting: len(l.waiting), Underway: l.underway}
	if l.breaker == nil {
		return s, !l.gone
	}
	if until, open := l.breaker.open(l.opt.Now()); open {
		s.Breaker, s.Until = gobreaker.StateOpen.String(), until
	} else {
		s.Breaker = l.breaker.machine.State().String()
	}
	return s, !l.gone
}

// paused reports whether an operator wants nothing to begin.
func (l *lane) paused() bool { return l.opt.Paused != nil && l.opt.Paused(l.name) }
