package config

import "strings"

// check looks at what no single setting can tell.
func (l *loader) check() {
	l.checkRetention()
	l.checkTokens()
	l.checkNames()
	for i := range l.cfg.Sources {
		l.checkSource(&l.cfg.Sources[i])
	}
	l.checkDestinations()
	if len(l.cfg.Sources) == 0 && l.in.Path != "" && len(l.problems) == 0 {
		l.fault(place{name: l.in.Path}, "no source is configured; add one under sources: with name, provider, secrets and to")
	}
	l.checkQueue()
	l.checkConnections()
	l.checkStop()
	if l.cfg.Listen == l.cfg.Admin && !strings.HasSuffix(l.cfg.Listen, ":0") {
		l.fault(l.cfg.where("admin"), "admin: %s is the address of listen as well; write another port", l.cfg.Admin)
	}
	l.misspelt()
}

// where returns the place that the first of the given settings came from.
func (c *Config) where(keys ...string) place {
	for _, key := range keys {
		if g, ok := c.origin[key]; ok {
			return g.at
		}
	}
	return place{}
}

func (l *loader) checkQueue() {
	if q := l.cfg.Queue; q.Batch > q.Events {
		l.fault(l.cfg.where("queue.batch", "queue.events"), "queue.batch: %d is more than queue.events, %d; write at most that", q.Batch, q.Events)
	}
}

func (l *loader) checkConnections() {
	if all, one := l.cfg.MaxConnections, l.cfg.MaxConnectionsPerAddress; one > all {
		l.fault(l.cfg.where("max_connections_per_address", "max_connections"), "max_connections_per_address: %d is more than max_connections, %d; write at most that", one, all)
	}
}

// checkStop leaves some of the time for stopping to what is under way.
func (l *loader) checkStop() {
	if delay, all := l.cfg.ShutdownDelay, l.cfg.ShutdownTimeout; delay > 0 && delay >= all {
		l.fault(l.cfg.where("shutdown_delay", "shutdown_timeout"), "shutdown_delay: %s leaves nothing of shutdown_timeout, %s, to what is under way; write less, or a longer shutdown_timeout",
			showDuration(delay), showDuration(all))
	}
}

func (l *loader) checkNames() {
	seen := map[string]place{}
	for _, s := range l.cfg.Sources {
		at := s.where("name")
		if s.Name == "" {
			continue
		}
		if first, twice := seen[s.Name]; twice {
			l.fault(at, "name: a source called %q exists already, at %s; write another name", s.Name, first)
			continue
		}
		seen[s.Name] = at
	}
}

// where returns the place that a setting of the source came from, or that of the source.
func (s *Source) where(key string) place {
	if g, ok := s.origin[key]; ok {
		return g.at
	}
	return s.at
}

// Where returns the place that a setting of the source was written at, or that of the source, for messages.
func (s *Source) Where(key string) string { return s.where(key).String() }

// checkSource looks for what a source lacks. What is there but wrong is reported already.
func (l *loader) checkSource(s *Source) {
	l.required(s, "name", "billing")
	l.checkPressure(s)
	if s.Mode == Idempotent {
		l.checkIdempotency(s)
		return
	}
	l.checkNotIdempotent(s)
	l.required(s, "provider", "stripe")
	if s.Provider != "" {
		l.checkProvider(s)
	}
	l.checkRoutes(s)
	l.checkMode(s)
	l.checkOutage(s)
	switch {
	case s.has("to") && s.has(routesKey):
		l.fault(s.where("to"), "to: source %q has routes as well, at %s; make this URL a destination and a route to it, or remove the routes", s.Name, s.where(routesKey))
	case !s.has("to") && !s.has(routesKey):
		l.warn(s.at, "source %q has no destination: its events are stored and delivered nowhere; write to: URL", s.Name)
	}
}

func (l *loader) required(s *Source, key, example string) {
	if !s.has(key) {
		l.fault(s.at, "a source lacks its %s; write %s: and a value such as %s", key, key, example)
	}
}

// has reports whether the setting was written anywhere, rightly or wrongly.
func (s *Source) has(key string) bool {
	_, ok := s.origin[key]
	return ok
}

// within returns where the first setting of a group was written, and whether one was.
func (s *Source) within(prefix string) (place, bool) {
	for _, f := range sourceSettings {
		if g, ok := s.origin[f.key]; ok && strings.HasPrefix(f.key, prefix) {
			return g.at, true
		}
	}
	return place{}, false
}
