package config

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// checkDestinations looks at every destination, and at what its sources can give it.
func (l *loader) checkDestinations() {
	l.checkDestinationNames()
	l.checkBreaker(l.cfg.where("delivery.breaker_pause_max"), "delivery.", &l.cfg.Delivery.Effort)
	for i := range l.cfg.Destinations {
		d := &l.cfg.Destinations[i]
		for _, need := range []struct{ key, example string }{{"name", "ledger"}, {"url", "https://ledger.internal/hooks"}} {
			if _, written := d.origin[need.key]; !written {
				l.fault(d.at, "a destination lacks its %s; write %s: and a value such as %s", need.key, need.key, need.example)
			}
		}
		l.checkDestination(d)
		l.checkReach(d.where("url"), "url", d.URL)
		l.checkUse(d)
	}
	for i := range l.cfg.Sources {
		s := &l.cfg.Sources[i]
		l.checkReach(s.where("to"), "to", s.To)
		if s.own == nil {
			continue
		}
		d := s.destination()
		l.checkDestination(&d)
		if known, err := s.spec(); err == nil && s.Provider != "" {
			l.checkOrder(&d, s, known)
		}
	}
	l.checkSignatures()
}

// checkDestination holds the settings of a destination against each other.
func (l *loader) checkDestination(d *Destination) {
	if len(d.PassHeaders) > 0 && len(d.DropHeaders) > 0 {
		l.fault(d.where("drop_headers"), "drop_headers: the destination %q has pass_headers, which drops all others; write one of the two", d.Name)
	}
	if at, own := d.own("breaker_pause_max", "breaker_pause"); own {
		l.checkBreaker(at, "", &d.Effort)
	}
	l.checkAuthorization(d)
	l.checkSigning(d)
	l.checkTLS(d)
}

// checkDestinationNames finds names that two destinations have: of a source with a URL of its own, one
// is made that has the name of the source.
func (l *loader) checkDestinationNames() {
	seen := map[string]place{}
	for _, d := range l.cfg.Destinations {
		if first, twice := seen[d.Name]; twice && d.Name != "" {
			l.fault(d.where("name"), "name: a destination called %q exists already, at %s; write another name", d.Name, first)
			continue
		}
		seen[d.Name] = d.where("name")
	}
	for _, s := range l.cfg.Sources {
		if at, twice := seen[s.Name]; twice && s.To != "" && s.Name != "" {
			l.fault(at, "name: the source %q has a URL of its own, and so a destination of that name; write another name, or routes: in the source", s.Name)
		}
	}
}

// checkBreaker finds pauses that get shorter.
func (l *loader) checkBreaker(at place, group string, e *Effort) {
	if e.BreakerPauseMax > 0 && e.BreakerPause > e.BreakerPauseMax {
		l.fault(at, "%[1]sbreaker_pause_max: %[2]s is shorter than %[1]sbreaker_pause, %[3]s; write at least that",
			group, showDuration(e.BreakerPauseMax), showDuration(e.BreakerPause))
	}
}

// checkAuthorization finds two things to say in one header.
func (l *loader) checkAuthorization(d *Destination) {
	u, err := url.Parse(d.URL)
	if err != nil || u.User == nil {
		return // the fault of the URL is reported already
	}
	for i, h := range d.Headers {
		if h.Name == "Authorization" {
			l.fault(d.origin.element("headers", i), "headers: Authorization is made of the user in the url; remove one of the two")
		}
	}
}

// checkSigning finds secrets that can be guessed, and those that look like those of Standard Webhooks and are none.
func (l *loader) checkSigning(d *Destination) {
	for i, secret := range d.Secrets {
		at := d.origin.element("secrets", i)
		text, ok := strings.CutPrefix(secret.value, "whsec_")
		key, err := base64.StdEncoding.DecodeString(text)
		switch {
		case secret.value == "": // reported already
		case !ok || err == nil && len(key) > 0:
			l.checkGuess(at, "secrets", len(text), "the gateway", "make one with openssl rand -hex 24, and give it to the application")
		default:
			l.fault(at, "secrets: what follows whsec_ is not base64; write the secret as it was made, or without that beginning")
		}
	}
}

// checkReach finds addresses that deliveries are not allowed to connect to. Names are checked when they
// are resolved.
func (l *loader) checkReach(at place, key, address string) {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return // reported already
	}
	l.checkLoop(at, key, u)
	if host := u.Hostname(); !l.cfg.Delivery.AllowPrivate && private(host) {
		l.fault(at, "%s: %s is no public address, and delivery.allow_private is false; write another one, or allow_private: true", key, host)
	}
	ports := l.cfg.Delivery.Ports
	if port := portOf(u); len(ports) > 0 && !slices.Contains(ports, port) {
		l.fault(at, "%s: port %d is not among delivery.ports; add it there, or write another URL", key, port)
	}
}

// private reports whether a host is known not to be public before it is resolved.
func private(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost"
	}
	ip = ip.Unmap()
	return !ip.IsGlobalUnicast() || ip.IsPrivate()
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	port, err := net.LookupPort("tcp", u.Scheme)
	if err != nil {
		return 0
	}
	return port
}

// checkUse warns about a destination that nobody sends to, and about order that its senders cannot
// give it.
func (l *loader) checkUse(d *Destination) {
	if d.Name == "" {
		return
	}
	used := false
	for i := range l.cfg.Sources {
		s := &l.cfg.Sources[i]
		if !slices.ContainsFunc(s.Routes, func(r Route) bool { return slices.Contains(r.To, d.Name) }) {
			continue
		}
		used = true
		if known, err := s.spec(); err == nil {
			l.checkOrder(d, s, known)
		}
	}
	if !used {
		l.warn(d.at, "no route leads to the destination %q; add one to a source, or remove it", d.Name)
	}
}

func (l *loader) checkOrder(d *Destination, s *Source, known spec.Spec) {
	who := known.Title
	switch {
	case d.Order == ByResource && !known.NamesResource():
		l.warn(d.where("order"), "order: the source %q sends to it, and %s does not say which resource an event is about: its events are in no order", s.Name, who)
	case d.Stale == StaleDeliver:
	case known.Order == nil || !known.NamesResource():
		l.warn(d.where("stale"), "stale: the source %q sends to it, and %s has nothing that tells newer from older: its events never count as stale", s.Name, who)
	case d.Stale == StaleDrop && known.Order.Advisory:
		l.warn(d.where("stale"), "stale: the source %q sends to it, and %s does not promise that its times are in order: what is dropped may be news; flag is the safer choice", s.Name, who)
	}
}
