package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
)

// Reload makes these the destinations that this process delivers to, in place of [Options.Destinations],
// which must not have been nil, and this the retention. It fails, and changes nothing, if the retention
// makes no sense. Safe for concurrent use.
//
// What is held for a destination that is gone stays with its receiver, who should hand it back; nothing more
// is taken for it, and its deliveries wait in the store for whoever knows it. An event is in an order, or is
// not, by what held when it was accepted.
func (j *Engine) Reload(destinations map[string]journal.Destination, keep *journal.Retention) error {
	if err := keep.Validate(); err != nil {
		return err
	}
	var paused map[string]bool
	if p := j.paused.Load(); p != nil {
		paused = *p
	}
	j.held.direct(destinations, paused)
	j.keep.Store(keep)
	j.lookHere()
	return nil
}

// direct makes these the destinations, of which some may be paused. One that was not there before, or not
// any more, is not suspended.
func (h *holds) direct(to map[string]journal.Destination, paused map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, d := range to {
		s := h.shares[name]
		if s == nil {
			s = newShare(name, h.opt)
			s.gone, h.shares[name] = true, s
		}
		if s.gone {
			s.gone, s.rest, s.paused = false, journal.Rest{}, paused[name]
		}
		s.bound(d, len(to), h.opt, h.all)
	}
	for name, s := range h.shares {
		if _, stays := to[name]; !stays {
			s.gone = true
		}
	}
	h.turns = slices.DeleteFunc(slices.Collect(maps.Values(h.shares)), func(s *share) bool { return s.gone })
	slices.SortFunc(h.turns, func(a, b *share) int { return strings.Compare(a.name, b.name) })
}

// inOrder returns the destinations that deliver in order.
func (h *holds) inOrder() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.shares {
		if s.Ordered && !s.gone {
			names = append(names, name)
		}
	}
	return names
}
