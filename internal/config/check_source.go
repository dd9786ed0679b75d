package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// checkSource looks for what a source lacks. What is there but wrong is reported already.
func checkSource(r *settings.Report, cfg *Config, s *Source, environ []string) {
	checkRequired(r, s, "name", "billing")
	checkLimits(r, cfg, s)
	if s.Mode == Idempotent {
		checkIdempotency(r, s)
		return
	}
	checkNotIdempotent(r, s)
	checkRequired(r, s, "provider", "stripe")
	if s.Provider != "" {
		checkSender(r, cfg, s, environ)
	}
	checkRoutes(r, cfg, s)
	checkMode(r, s)
	checkOutage(r, s)
	switch {
	case s.has("to") && s.has(routesKey):
		r.Fault(s.where("to"), "to: source %q has routes as well, at %s; make this URL a destination and a route to it, or remove the routes", s.Name, s.where(routesKey))
	case !s.has("to") && !s.has(routesKey):
		r.Warn(s.at, "source %q has no destination: its events are stored and delivered nowhere; write to: URL", s.Name)
	}
}

func checkRequired(r *settings.Report, s *Source, key, example string) {
	if !s.has(key) {
		r.Fault(s.at, "a source lacks its %s; write %s: and a value such as %s", key, key, example)
	}
}

// checkLimits looks at what a source does to keep senders at bay.
func checkLimits(r *settings.Report, cfg *Config, s *Source) {
	if s.has("burst") && !s.has("rate") {
		r.Fault(s.where("burst"), "burst: it needs a rate to go beyond; write rate: as well, or remove it")
	}
	host, _, err := net.SplitHostPort(cfg.Listen)
	if len(s.Allow) > 0 && len(cfg.TrustedProxies) == 0 && err == nil && isLoopback(host) {
		r.Warn(s.where("allow"), "allow: listen is a loopback address, so that every request comes from a proxy on this machine; write its address under trusted_proxies")
	}
}

// checkIdempotency holds a source in mode [Idempotent] against what that needs.
func checkIdempotency(r *settings.Report, s *Source) {
	for _, f := range sourceTable {
		if s.has(f.Key) && !slices.Contains(forIdempotent, f.Key) && !strings.HasPrefix(f.Key, "idempotency.") {
			r.Fault(s.where(f.Key), "%s: source %q has mode: idempotency, whose requests are no events of a provider; remove it", f.Key, s.Name)
		}
	}
	for _, key := range []string{routesKey, specKey} {
		if s.has(key) {
			r.Fault(s.where(key), "%s: source %q has mode: idempotency, whose requests go to the one service at to:; remove it", key, s.Name)
		}
	}
	switch u, err := url.Parse(s.To); {
	case !s.has("to"):
		r.Fault(s.at, "source %q lacks its service; write to: and the URL that the paths of requests are added to", s.Name)
	case err == nil && (u.User != nil || u.RawQuery != ""):
		r.Fault(s.where("to"), "to: with mode: idempotency every request has its own user and query; leave out those of the URL")
	}
	switch scope := s.Idempotency.Scope; {
	case !s.has("idempotency.scope"):
		r.Fault(s.where("mode"), `mode: with idempotency, whoever sends the key of another gets the other's answer, unless callers are told apart; write idempotency: {scope: ["header:NAME"]} with the header by which the service knows them, or scope: none`)
	case slices.Contains(scope, scopeOfAll) && len(scope) > 1:
		r.Fault(s.where("idempotency.scope"), "idempotency.scope: none stands alone; remove it, or the others")
	}
	checkHeaderSpellings(r, s)
}

// checkHeaderSpellings finds headers that some applications take for one and the same, so that no request could have both.
func checkHeaderSpellings(r *settings.Report, s *Source) {
	seen := map[string]string{}
	for _, name := range slices.Concat(s.Idempotency.ScopeHeaders(), s.Idempotency.Headers) {
		name = strings.TrimPrefix(name, "header:")
		folded := header.Fold(name)
		if other, ok := seen[folded]; ok && !strings.EqualFold(name, other) {
			r.Fault(s.where("mode"), "idempotency: %s and %s are the same header to some applications; keep the one that the service reads", other, name)
		}
		seen[folded] = name
	}
}

// forIdempotent are the settings that make sense for a source in mode [Idempotent], besides its own.
var forIdempotent = []string{"name", "mode", "to", "rate", "burst", "allow", "deadline", "max_body"}

// checkNotIdempotent finds settings that need the mode [Idempotent] in a source that has another.
func checkNotIdempotent(r *settings.Report, s *Source) {
	if at, written := s.within("idempotency."); written {
		r.Fault(at, "idempotency: these settings are for mode: idempotency; remove them, or write that mode")
	}
}

// checkRoutes looks at the routes of a source.
func checkRoutes(r *settings.Report, cfg *Config, s *Source) {
	known, err := s.spec()
	for i := range s.Routes {
		to := &s.Routes[i]
		if !to.origin.Has("to") {
			r.Fault(to.at, "a route lacks its destination; write to: and the name of one")
		}
		checkTargets(r, cfg, to)
		checkRepeats(r, s.Routes[:i], to)
		if err != nil {
			continue // reported already
		}
		if len(to.Types) > 0 && len(known.Event.Type) == 0 {
			r.Warn(to.where("types"), "types: %s does not say of which type an event is, so that only the pattern * matches", known.Title)
		}
		for n, m := range to.Where {
			if _, err := known.Fields(m.Field); err != nil {
				r.Fault(to.origin.Element("where", n), "where: %v", err)
			}
		}
	}
}

// checkTargets finds destinations that do not exist.
func checkTargets(r *settings.Report, cfg *Config, route *Route) {
	var known []string
	for _, d := range cfg.Destinations {
		known = append(known, d.Name)
	}
	for _, t := range route.origin["to"].Texts {
		name, at := t.Text, t.At
		switch {
		case checkName(name) != nil, slices.Contains(known, name):
		case len(known) == 0:
			r.Fault(at, "to: there is no destination %q; add it under destinations: with name and url", name)
		default:
			r.Fault(at, "to: there is no destination %q%s", name, settings.Suggest(name, known))
		}
	}
}

// checkRepeats warns about a route that adds nothing to an earlier one, which sends everything.
func checkRepeats(r *settings.Report, before []Route, route *Route) {
	for i := range before {
		b := &before[i]
		if len(b.Types) > 0 || len(b.Where) > 0 || len(route.To) == 0 {
			continue
		}
		if !slices.ContainsFunc(route.To, func(name string) bool { return !slices.Contains(b.To, name) }) {
			r.Warn(route.at, "this route adds nothing: the one at %s sends every event to the same destinations", b.at)
			return
		}
	}
}

// checkMode holds a source in mode sync against what that needs: one destination whose answer is meant.
func checkMode(r *settings.Report, s *Source) {
	if s.Mode == Observe {
		checkObserve(r, s)
		return
	}
	if s.Mode != Sync {
		if s.has("deadline") && s.OnStoreDown != Open {
			r.Warn(s.where("deadline"), "deadline: the sender of source %q is kept waiting only with mode: sync or on_store_down: open; write one of these, or remove it", s.Name)
		}
		return
	}
	at := s.where("mode")
	switch to := s.Reaches(); {
	case len(to) == 0:
		r.Fault(at, "mode: sync answers with what the destination answers, and source %q has none; write to: or one route, or mode: async", s.Name)
	case len(to) > 1:
		r.Fault(at, "mode: sync answers with what the destination answers, and source %q has %d: %s; keep one, or write mode: async", s.Name, len(to), strings.Join(to, ", "))
	}
	if len(s.LogicalDuplicates.Drop) > 0 {
		r.Fault(s.where("logical_duplicates.drop"), "logical_duplicates.drop: the sender of source %q waits for the answer to each event (mode: sync), so that none can be dropped; remove it", s.Name)
	}
	known, err := s.spec()
	if err != nil {
		return // reported already
	}
	if dropsLogicalDuplicates(known) {
		r.Fault(at, "mode: the sender of source %q waits for the answer to each event, and a rule of %s drops some as logical duplicates (dedup.logical, mode: drop); write mode: flag in that rule, or mode: async here", s.Name, known.Title)
	}
	if sendsBatches(known) {
		r.Warn(at, "mode: %s puts several events into one request; such a request is answered as with async, and only one with a single event is answered with what the destination answers", known.Title)
	}
}

// checkObserve holds a source in mode observe against what it promises: that its one application sees what it would
// see without us. Settings that begin to count with another mode may be there already.
func checkObserve(r *settings.Report, s *Source) {
	switch {
	case s.has(routesKey):
		r.Fault(s.where(routesKey), "routes: source %q has mode: observe, which forwards each request to one application; write to: and its URL, and the routes when the mode is another", s.Name)
	case !s.has("to"):
		r.Fault(s.where("mode"), "mode: observe forwards each request to one application, and source %q names none; write to: and its URL", s.Name)
	}
	for _, key := range []string{"allow", "rate", "burst"} {
		if s.has(key) {
			r.Fault(s.where(key), "%s: source %q has mode: observe, which refuses no request; remove it until the mode is another", key, s.Name)
		}
	}
}

// sendsBatches reports whether a sender may put several events into a request.
func sendsBatches(s spec.Spec) bool { return s.Split != nil }

// dropsLogicalDuplicates reports whether a specification drops logical duplicates that no source names.
func dropsLogicalDuplicates(s spec.Spec) bool {
	return slices.ContainsFunc(s.Dedup.Logical, func(rule spec.Logical) bool { return rule.Mode == spec.DropLogicalDuplicate })
}

// checkOutage holds what a source does while the store is down against the rest of it.
func checkOutage(r *settings.Report, s *Source) {
	switch {
	case s.OnStoreDown != Open:
		if s.has("open_types") {
			r.Fault(s.where("open_types"), "open_types: it says which events on_store_down: open is for, and source %q is closed; write on_store_down: open as well, or remove it", s.Name)
		}
	case s.Mode == Sync:
		r.Fault(s.where("on_store_down"), "on_store_down: source %q has mode: sync, whose answers are kept for copies; write closed, or mode: async", s.Name)
	case len(s.Reaches()) == 0:
		r.Fault(s.where("on_store_down"), "on_store_down: open delivers past the store, and source %q has no destination; write to: or routes, or closed", s.Name)
	}
}
