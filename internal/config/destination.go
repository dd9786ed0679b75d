package config

import (
	"time"
)

// Effort says how a destination is delivered to, and for how long.
type Effort struct {
	// Concurrency is how many deliveries to one destination are under way at once.
	Concurrency int
	// Timeout bounds one attempt.
	Timeout time.Duration
	// Rate is how many attempts begin in a second. Zero: as many as there are.
	Rate float64
	// Attempts is after how many attempts a delivery is dead.
	Attempts int
	// Backoff is the wait after the first failed attempt. Each further one is three times as long,
	// up to BackoffMax; a random part of up to a half is taken off.
	Backoff    time.Duration
	BackoffMax time.Duration
	// GiveUp is after how long a delivery is dead, whatever attempts are left.
	GiveUp time.Duration
	// Permanent are the statuses after which a delivery is dead at once, besides 410.
	Permanent []int
	// Breaker is set if a destination that is ill only gets probes: after BreakerFailures in a row, the first
	// after BreakerPause, then after twice as long, up to BreakerPauseMax. Pauses of zero are made from the
	// schedule.
	Breaker         bool
	BreakerFailures int
	BreakerPause    time.Duration
	BreakerPauseMax time.Duration
}

// Destination is one place that events are delivered to, by the name that routes use.
type Destination struct {
	Name string
	// URL is where events are POSTed to.
	URL string
	Effort
	// Secrets sign each delivery in the way of Standard Webhooks, every one of them. None: deliveries
	// are not signed.
	Secrets []Secret
	// SignAs is [SignProvider] or [SignNone].
	SignAs string
	// AppSecret is the secret of the provider's with which the application verifies. Not set: those of the source.
	AppSecret Secret
	// AppURL is the URL at which the application believes to be called, for providers that sign it. Empty: URL.
	AppURL string
	// Headers are added to each delivery.
	Headers []Header
	// PassHeaders are the only ones of the provider's headers that are passed on; DropHeaders are the
	// ones that are not. Both empty: all that its sources keep.
	PassHeaders, DropHeaders []string
	// AlsoPass are names, and beginnings of names that end in a star, of headers that are passed on besides.
	AlsoPass []string
	// Order is [Unordered] or [ByResource].
	Order string
	// Stale says what happens to an event when a newer one about the same resource was delivered:
	// [StaleDeliver], [StaleFlag] or [StaleDrop].
	Stale string
	// TLS is how the destination is recognised, and how it recognises us.
	TLS TLS

	origin layer
	at     place
}

// The orders of deliveries.
const (
	Unordered  = "none"        // as soon as possible
	ByResource = "by_resource" // one by one for each resource, oldest first
)

// Whose signature deliveries carry, besides that of [Destination.Secrets].
const (
	SignProvider = "provider" // the provider's, made anew where it would fail
	SignNone     = "none"     // the provider's as it came
)

// What happens to stale events.
const (
	StaleDeliver = "deliver" // nobody looks
	StaleFlag    = "flag"    // they are delivered with a header that says so
	StaleDrop    = "drop"    // they are not delivered
)

// destinationSettings declares every setting of a destination. Those that are not written are taken
// from the setting of the same name under delivery, where there is one.
var destinationSettings = []field[Destination]{
	{key: "name", bind: func(d *Destination) value { return text{&d.Name, checkName} }},
	{key: "url", bind: func(d *Destination) value { return endpoint{to: &d.URL} }},
	{key: "secrets", bind: func(d *Destination) value { return references{&d.Secrets} }},
	{key: "sign_as", def: SignNone, bind: func(d *Destination) value { return choice{&d.SignAs, []string{SignProvider, SignNone}} }},
	{key: "app_secret", bind: func(d *Destination) value { return reference{&d.AppSecret} }},
	{key: "app_url", bind: func(d *Destination) value { return endpoint{to: &d.AppURL} }},
	{key: "timeout", bind: func(d *Destination) value { return duration{&d.Timeout, briefly, time.Hour} }},
	{key: "concurrency", bind: func(d *Destination) value { return count{&d.Concurrency, 1, 10_000} }},
	{key: "rate", bind: func(d *Destination) value { return rate{&d.Rate} }},
	{key: "attempts", bind: func(d *Destination) value { return count{&d.Attempts, 1, 1000} }},
	{key: "backoff", bind: func(d *Destination) value { return duration{&d.Backoff, briefly, day} }},
	{key: "backoff_max", bind: func(d *Destination) value { return duration{&d.BackoffMax, briefly, 30 * day} }},
	{key: "give_up", bind: func(d *Destination) value { return duration{&d.GiveUp, briefly, forever} }},
	{key: "permanent", bind: func(d *Destination) value { return numbers{&d.Permanent, "422", checkPermanent} }},
	{key: "breaker", bind: func(d *Destination) value { return boolean{&d.Breaker} }},
	{key: "breaker_failures", bind: func(d *Destination) value { return count{&d.BreakerFailures, 1, 10_000} }},
	{key: "breaker_pause", bind: func(d *Destination) value { return duration{&d.BreakerPause, briefly, day} }},
	{key: "breaker_pause_max", bind: func(d *Destination) value { return duration{&d.BreakerPauseMax, briefly, day} }},
	{key: "headers", bind: func(d *Destination) value { return headers{&d.Headers} }},
	{key: "pass_headers", bind: func(d *Destination) value { return headerNames(&d.PassHeaders) }},
	{key: "drop_headers", bind: func(d *Destination) value { return headerNames(&d.DropHeaders) }},
	{key: "also_pass", bind: func(d *Destination) value { return headerBeginnings(&d.AlsoPass) }},
	{key: "order", def: Unordered, bind: func(d *Destination) value { return choice{&d.Order, []string{Unordered, ByResource}} }},
	{key: "stale", def: StaleDeliver, bind: func(d *Destination) value {
		return choice{&d.Stale, []string{StaleDeliver, StaleFlag, StaleDrop}}
	}},
	{key: "tls.ca", bind: func(d *Destination) value { return file{text{&d.TLS.CA, checkFile}, &d.TLS.pem.ca} }},
	{key: "tls.cert", bind: func(d *Destination) value { return file{text{&d.TLS.Cert, checkFile}, &d.TLS.pem.cert} }},
	{key: "tls.key", bind: func(d *Destination) value { return file{text{&d.TLS.Key, checkFile}, &d.TLS.pem.key} }},
	{key: "tls.server_name", bind: func(d *Destination) value { return text{&d.TLS.ServerName, checkHost} }},
}

// NewDestination returns a destination with everything else as the configuration has it for all.
func (c *Config) NewDestination(name, url string) Destination {
	d := Destination{Effort: c.Delivery.Effort}
	for _, f := range destinationSettings {
		f.reset(&d)
	}
	d.Name, d.URL = name, url
	return d
}

// Address returns the URL without what may be secret in it, for people.
func (d *Destination) Address() string { return endpoint{to: &d.URL}.show() }

// AllDestinations returns the destinations of the file, and the one of every source with a URL of its
// own, which has the name of the source.
func (c *Config) AllDestinations() []Destination {
	all := append([]Destination(nil), c.Destinations...)
	for _, s := range c.Sources {
		if s.To != "" && s.Mode != Idempotent {
			all = append(all, c.ownDestination(&s))
		}
	}
	return all
}

// destination builds one destination.
func (l *loader) destination(from section) {
	l.cfg.Destinations = append(l.cfg.Destinations, l.newDestination(from))
}

func (l *loader) newDestination(from section) Destination {
	d := Destination{at: from.at, Effort: l.cfg.Delivery.Effort}
	d.origin = apply(l, &d, destinationSettings, from.settings)
	for key, g := range l.cfg.inherited() {
		if _, own := d.origin[key]; !own {
			d.origin[key] = g
		}
	}
	if !l.in.NoSecrets {
		l.resolveDestination(&d)
	}
	return d
}

// inherited says of every setting that destinations take from those under delivery where it is.
func (c *Config) inherited() layer {
	from := layer{}
	for _, f := range destinationSettings {
		global, ok := find(settings, "delivery."+f.key)
		if !ok {
			continue
		}
		if _, set := c.origin[global.key]; set || global.def != "" {
			from[f.key] = given{at: place{name: global.key}}
		}
	}
	return from
}

// where returns the place that a setting of the destination came from, or that of the destination.
func (d *Destination) where(key string) place {
	if g, ok := d.origin[key]; ok {
		return g.at
	}
	return d.at
}

// own returns where the first of the settings was written that the destination does not take from all.
func (d *Destination) own(keys ...string) (place, bool) {
	for _, key := range keys {
		if g, ok := d.origin[key]; ok && g.at != (place{name: "delivery." + key}) {
			return g.at, true
		}
	}
	return place{}, false
}

// resolveDestination reads what the references of a destination name.
func (l *loader) resolveDestination(d *Destination) {
	for i := range d.Secrets {
		if err := d.Secrets[i].resolve(l.in); err != nil {
			l.fault(d.origin.element("secrets", i), "secrets: %v", err)
		}
	}
	if err := d.AppSecret.resolve(l.in); err != nil {
		l.fault(d.where("app_secret"), "app_secret: %v", err)
	}
	for i := range d.Headers {
		if err := d.Headers[i].resolve(l.in); err != nil {
			l.fault(d.origin.element("headers", i), "headers: %s: %v", d.Headers[i].Name, err)
		}
	}
	l.resolveTLS(d)
}
