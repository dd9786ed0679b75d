package config

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// checkDestinations looks at every destination, and at what its sources can give it.
func checkDestinations(r *settings.Report, cfg *Config, environ []string) {
	checkDestinationNames(r, cfg)
	checkBreaker(r, cfg.where("delivery.breaker_pause_max"), "delivery.", &cfg.Delivery.Effort)
	for i := range cfg.Destinations {
		d := &cfg.Destinations[i]
		for _, need := range []struct{ key, example string }{{"name", "ledger"}, {"url", "https://ledger.internal/hooks"}} {
			if !d.origin.Has(need.key) {
				r.Fault(d.at, "a destination lacks its %s; write %s: and a value such as %s", need.key, need.key, need.example)
			}
		}
		checkDestination(r, d, environ)
		checkReach(r, cfg, d.where("url"), "url", d.URL)
		checkUse(r, cfg, d)
	}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		checkReach(r, cfg, s.where("to"), "to", s.To)
		if s.own == nil {
			continue
		}
		d := s.destination()
		checkDestination(r, &d, environ)
		if known, err := s.spec(); err == nil && s.Provider != "" {
			checkOrder(r, &d, s, known)
		}
	}
}

// checkDestination holds the settings of a destination against each other.
func checkDestination(r *settings.Report, d *Destination, environ []string) {
	if len(d.PassHeaders) > 0 && len(d.DropHeaders) > 0 {
		r.Fault(d.where("drop_headers"), "drop_headers: the destination %q has pass_headers, which drops all others; write one of the two", d.Name)
	}
	if at, own := d.own("breaker_pause_max", "breaker_pause"); own {
		checkBreaker(r, at, "", &d.Effort)
	}
	checkAuthorization(r, d)
	checkSigning(r, d, environ)
	checkHTTPSignature(r, d, environ)
	checkTLS(r, d)
}

// checkDestinationNames finds names that two destinations have: of a source with a URL of its own, one
// is made that has the name of the source.
func checkDestinationNames(r *settings.Report, cfg *Config) {
	seen := map[string]settings.Place{}
	for _, d := range cfg.Destinations {
		if first, twice := seen[d.Name]; twice && d.Name != "" {
			r.Fault(d.where("name"), "name: a destination called %q exists already, at %s; write another name", d.Name, first)
			continue
		}
		seen[d.Name] = d.where("name")
	}
	for _, s := range cfg.Sources {
		if at, twice := seen[s.Name]; twice && s.To != "" && s.Name != "" {
			r.Fault(at, "name: the source %q has a URL of its own, and so a destination of that name; write another name, or routes: in the source", s.Name)
		}
	}
}

// checkBreaker finds pauses that get shorter.
func checkBreaker(r *settings.Report, at settings.Place, group string, e *Effort) {
	if e.BreakerPauseMax > 0 && e.BreakerPause > e.BreakerPauseMax {
		r.Fault(at, "%[1]sbreaker_pause_max: %[2]s is shorter than %[1]sbreaker_pause, %[3]s; write at least that",
			group, settings.ShowDuration(e.BreakerPauseMax), settings.ShowDuration(e.BreakerPause))
	}
}

// checkAuthorization finds two things to say in one header.
func checkAuthorization(r *settings.Report, d *Destination) {
	u, err := url.Parse(d.URL)
	if err != nil || u.User == nil {
		return // the fault of the URL is reported already
	}
	for i, h := range d.Headers {
		if h.Name == "Authorization" {
			r.Fault(d.origin.Element("headers", i), "headers: Authorization is made of the user in the url; remove one of the two")
		}
	}
}

// checkSigning finds secrets that can be guessed, and those that look like those of Standard Webhooks and are none.
func checkSigning(r *settings.Report, d *Destination, environ []string) {
	own := spec.Spec{OwnSecret: true, Secret: "one that openssl rand -hex 24 makes", Verify: []spec.Verify{{Key: spec.KeyWhsec}}}
	for i, secret := range d.Secrets {
		at := d.origin.Element("secrets", i)
		if secret.Reveal() != "" && !checkShape(r, at, "secrets", secret, environ, own) {
			continue
		}
		text, ok := strings.CutPrefix(secret.Reveal(), "whsec_")
		key, err := base64.StdEncoding.DecodeString(text)
		switch {
		case secret.Reveal() == "": // reported already
		case !ok || err == nil && len(key) > 0:
			checkGuess(r, at, "secrets", len(text), "the gateway", "make one with openssl rand -hex 24, and give it to the application")
		default:
			r.Fault(at, "secrets: what follows whsec_ is not base64; write the secret as it was made, or without that beginning")
		}
	}
}

// checkTLS looks for halves, and for what plain HTTP has no use for.
func checkTLS(r *settings.Report, d *Destination) {
	at, written := settings.Within(d.origin, destinationTable, "tls.")
	if !written {
		return
	}
	if u, err := url.Parse(d.URL); err == nil && u.Scheme == "http" {
		r.Fault(at, "tls: the destination %q is called without TLS; write https: in its url, or remove these settings", d.Name)
	}
	checkPair(r, d.origin, at, "tls")
}

// checkPair finds a certificate without its key, and a key without its certificate, of the settings below key.
func checkPair(r *settings.Report, origin settings.Layer, at settings.Place, key string) {
	if origin.Has(key+".cert") != origin.Has(key+".key") {
		r.Fault(at, "%s: a certificate and its key go together; write both %[1]s.cert and %[1]s.key", key)
	}
}

// checkReach finds addresses that deliveries are not allowed to connect to. Names are checked when they
// are resolved.
func checkReach(r *settings.Report, cfg *Config, at settings.Place, key, address string) {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return // reported already
	}
	checkLoop(r, cfg, at, key, u)
	if host := u.Hostname(); !cfg.Delivery.AllowPrivate && isPrivate(host) {
		r.Fault(at, "%s: %s is no public address, and delivery.allow_private is false; write another one, or allow_private: true", key, host)
	}
	ports := cfg.Delivery.Ports
	if port := portOf(u); len(ports) > 0 && !slices.Contains(ports, port) {
		r.Fault(at, "%s: port %d is not among delivery.ports; add it there, or write another URL", key, port)
	}
}

// checkLoop finds an address that is this gateway's own: it would send itself what it receives.
func checkLoop(r *settings.Report, cfg *Config, at settings.Place, key string, to *url.URL) {
	for _, own := range []struct{ setting, address string }{{"listen", cfg.Listen}, {"admin", cfg.Admin}} {
		host, port, err := net.SplitHostPort(own.address)
		if err != nil || port == "0" || port != strconv.Itoa(portOf(to)) || !reachesListener(host, to.Hostname()) {
			continue
		}
		r.Fault(at, "%s: %s is the address of %s, and so of the gateway itself; write that of your app, or give %s another port",
			key, to.Host, own.setting, own.setting)
	}
}

// reachesListener reports whether who connects to host surely comes to a listener on the address own.
func reachesListener(own, host string) bool {
	if strings.EqualFold(own, host) {
		return true
	}
	named := strings.EqualFold(host, "localhost")
	local := named
	if ip, err := netip.ParseAddr(host); err == nil {
		local = ip.IsLoopback() || ip.IsUnspecified()
	}
	listens, err := netip.ParseAddr(own)
	everywhere := own == "" || err == nil && listens.IsUnspecified()
	return local && (everywhere || named && (own == "127.0.0.1" || own == "::1"))
}

// checkUse warns about a destination that nobody sends to, and about order that its senders cannot
// give it.
func checkUse(r *settings.Report, cfg *Config, d *Destination) {
	if d.Name == "" {
		return
	}
	used := false
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if !slices.ContainsFunc(s.Routes, func(r Route) bool { return slices.Contains(r.To, d.Name) }) {
			continue
		}
		used = true
		if known, err := s.spec(); err == nil {
			checkOrder(r, d, s, known)
		}
	}
	if !used {
		r.Warn(d.at, "no route leads to the destination %q; add one to a source, or remove it", d.Name)
	}
}

func checkOrder(r *settings.Report, d *Destination, s *Source, known spec.Spec) {
	who := known.Title
	switch {
	case d.Order == ByResource && !known.NamesResource():
		r.Warn(d.where("order"), "order: the source %q sends to it, and %s does not say which resource an event is about: its events are in no order", s.Name, who)
	case d.Stale == StaleDeliver:
	case known.Order == nil || !known.NamesResource():
		r.Warn(d.where("stale"), "stale: the source %q sends to it, and %s has nothing that tells newer from older: its events never count as stale", s.Name, who)
	case d.Stale == StaleDrop && known.Order.Advisory:
		r.Warn(d.where("stale"), "stale: the source %q sends to it, and %s does not promise that its times are in order: what is dropped may be news; flag is the safer choice", s.Name, who)
	}
}
