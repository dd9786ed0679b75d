package config

import (
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// When a sender is answered.
const (
	Async   = "async"   // when its event is stored
	Sync    = "sync"    // when the destination has answered, with the same
	Observe = "observe" // as with Sync, and nothing else is done: see package observe
)

// What happens while the store is unavailable.
const (
	Closed = "closed" // senders are told to come again
	Open   = "open"   // events are delivered past the store
)

// usualPatience is how long senders are kept waiting that do not say how long they wait.
const usualPatience = 10 * time.Second

// Patience returns how long a sender may be kept waiting: what is configured, or else what the provider is
// known to wait, less a sixth, at most a second, for the way there and back, and 10 seconds if that is
// not known.
func (s *Source) Patience() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	known, err := s.spec()
	if err != nil || known.Answer.Deadline == 0 {
		return usualPatience
	}
	waits := known.Answer.Deadline
	return min(waits-min(waits/6, time.Second), longestPatience)
}

// longestPatience leaves the listener the time to write the answer.
const longestPatience = 25 * time.Second

// checkMode holds a source in mode sync against what that needs: one destination whose answer is meant.
func (l *loader) checkMode(s *Source) {
	if s.Mode == Observe {
		l.checkObserve(s)
		return
	}
	if s.Mode != Sync {
		if s.has("deadline") && s.OnStoreDown != Open {
			l.warn(s.where("deadline"), "deadline: the sender of source %q is kept waiting only with mode: sync or on_store_down: open; write one of these, or remove it", s.Name)
		}
		return
	}
	at := s.where("mode")
	switch to := s.Reaches(); {
	case len(to) == 0:
		l.fault(at, "mode: sync answers with what the destination answers, and source %q has none; write to: or one route, or mode: async", s.Name)
	case len(to) > 1:
		l.fault(at, "mode: sync answers with what the destination answers, and source %q has %d: %s; keep one, or write mode: async", s.Name, len(to), strings.Join(to, ", "))
	}
	if len(s.Twins.Drop) > 0 {
		l.fault(s.where("twins.drop"), "twins.drop: the sender of source %q waits for the answer to each event (mode: sync), so that none can be dropped; remove it", s.Name)
	}
	known, err := s.spec()
	if err != nil {
		return // reported already
	}
	if dropsTwins(known) {
		l.fault(at, "mode: the sender of source %q waits for the answer to each event, and a rule of %s drops some as twins (dedup.logical, mode: drop); write mode: flag in that rule, or mode: async here", s.Name, known.Title)
	}
	if batches(known) {
		l.warn(at, "mode: %s puts several events into one request; such a request is answered as with async, and only one with a single event is answered with what the destination answers", known.Title)
	}
}

// checkObserve holds a source in mode observe against what it promises: that its one application sees what it would
// see without us. Settings that begin to count with another mode may be there already.
func (l *loader) checkObserve(s *Source) {
	switch {
	case s.has(routesKey):
		l.fault(s.where(routesKey), "routes: source %q has mode: observe, which forwards each request to one application; write to: and its URL, and the routes when the mode is another", s.Name)
	case !s.has("to"):
		l.fault(s.where("mode"), "mode: observe forwards each request to one application, and source %q names none; write to: and its URL", s.Name)
	}
	for _, key := range []string{"allow", "rate", "burst"} {
		if s.has(key) {
			l.fault(s.where(key), "%s: source %q has mode: observe, which refuses no request; remove it until the mode is another", key, s.Name)
		}
	}
}

// GivesUp returns how long the sender is known to wait for an answer: what is configured, or else what the provider says;
// zero if that is not known.
func (s *Source) GivesUp() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	known, err := s.spec()
	if err != nil {
		return 0
	}
	return known.Answer.Deadline
}

// batches reports whether a sender may put several events into a request.
func batches(s spec.Spec) bool { return s.Split != nil }

// dropsTwins reports whether a specification drops twins that no source names.
func dropsTwins(s spec.Spec) bool {
	return slices.ContainsFunc(s.Dedup.Logical, func(rule spec.Logical) bool { return rule.Mode == spec.DropTwin })
}

// checkOutage holds what a source does while the store is down against the rest of it.
func (l *loader) checkOutage(s *Source) {
	switch {
	case s.OnStoreDown != Open:
		if s.has("open_types") {
			l.fault(s.where("open_types"), "open_types: it says which events on_store_down: open is for, and source %q is closed; write on_store_down: open as well, or remove it", s.Name)
		}
	case s.Mode == Sync:
		l.fault(s.where("on_store_down"), "on_store_down: source %q has mode: sync, whose answers are kept for copies; write closed, or mode: async", s.Name)
	case len(s.Reaches()) == 0:
		l.fault(s.where("on_store_down"), "on_store_down: open delivers past the store, and source %q has no destination; write to: or routes, or closed", s.Name)
	}
}
