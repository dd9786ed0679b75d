package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/settings"
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

// delivery is the group of the settings of all destinations.
const delivery = "delivery."

// effortTable declares the settings that stand below delivery for all destinations; each destination
// can have its own.
var effortTable = settings.Table[Effort]{
	{Key: "concurrency", Default: "64", Help: "`number` of deliveries to one destination under way at once",
		Bind: func(e *Effort) settings.Value { return settings.Count(&e.Concurrency, 1, 10_000) }},
	{Key: "timeout", Default: "15s", Help: "longest `time` that one delivery may take",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.Timeout, briefly, time.Hour) }},
	{Key: "rate", Help: "`number` of attempts per second to one destination; no bound if not set",
		Bind: func(e *Effort) settings.Value { return settings.Rate(&e.Rate, minRate, maxRate) }},
	{Key: "attempts", Default: strconv.Itoa(retry.DefaultAttempts), Help: "`number` of attempts before a delivery is dead",
		Bind: func(e *Effort) settings.Value { return settings.Count(&e.Attempts, 1, 1000) }},
	{Key: "backoff", Default: settings.ShowDuration(retry.DefaultFirst), Help: "`time` to wait after the first failed attempt; each further wait is three times as long",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.Backoff, briefly, settings.Day) }},
	{Key: "backoff_max", Default: settings.ShowDuration(retry.DefaultLongest), Help: "longest `time` to wait between two attempts",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.BackoffMax, briefly, 30*settings.Day) }},
	{Key: "give_up", Default: "7d", Help: "`time` after which a delivery is dead, whatever attempts are left",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.GiveUp, briefly, forever) }},
	{Key: "permanent", Help: "`status` of a destination after which a delivery is dead at once, besides 410; repeatable",
		Bind: func(e *Effort) settings.Value { return settings.Numbers(&e.Permanent, "422", retry.CheckPermanent) }},
	{Key: "breaker", Default: "true", Help: "only probe a destination that is ill, and let it recover by and by",
		Bind: func(e *Effort) settings.Value { return settings.Bool(&e.Breaker) }},
	{Key: "breaker_failures", Default: "10", Help: "`number` of failures in a row that show that a destination is ill",
		Bind: func(e *Effort) settings.Value { return settings.Count(&e.BreakerFailures, 1, 10_000) }},
	{Key: "breaker_pause", Help: "`time` from one probe of an ill destination to the next, at first; 1s, or backoff if that is shorter, if not set",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.BreakerPause, briefly, settings.Day) }},
	{Key: "breaker_pause_max", Help: "longest such `time`: each is twice as long as the one before; 4s, or the last wait between attempts if that is shorter, if not set",
		Bind: func(e *Effort) settings.Value { return settings.Duration(&e.BreakerPauseMax, briefly, settings.Day) }},
}

// Destination is one place that events are delivered to, by the name that routes use.
type Destination struct {
	Name string
	// URL is where events are POSTed to.
	URL string
	Effort
	// Secrets sign each delivery in the way of Standard Webhooks, every one of them. None: deliveries
	// are not signed.
	Secrets []settings.Secret
	// HTTPSignature has the keys that sign each delivery with HTTP message signatures (RFC 9421), every one of them. None:
	// there are no such signatures.
	HTTPSignature []HTTPKey
	// SignAs is [SignProvider] or [SignNone].
	SignAs string
	// AppSecret is the secret of the provider's with which the application verifies. Not set: those of the source.
	AppSecret settings.Secret
	// AppURL is the URL at which the application believes to be called, for providers that sign it, and for HTTPSignature.
	// Empty: URL.
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

	origin settings.Layer
	at     settings.Place
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

// destinationTable declares every setting of a destination. Those of [Effort] that are not written are
// taken from the setting of the same name under delivery.
var destinationTable = slices.Concat(
	settings.Table[Destination]{
		{Key: "name", Bind: func(d *Destination) settings.Value { return settings.Text(&d.Name, checkName) }},
		{Key: "url", Bind: func(d *Destination) settings.Value { return settings.URL(&d.URL) }},
		{Key: "secrets", Bind: func(d *Destination) settings.Value { return settings.References(&d.Secrets) }},
		{Key: "http_signature", Bind: func(d *Destination) settings.Value { return httpKeys{&d.HTTPSignature} }},
		{Key: "sign_as", Default: SignNone, Bind: func(d *Destination) settings.Value { return settings.Choice(&d.SignAs, SignProvider, SignNone) }},
		{Key: "app_secret", Bind: func(d *Destination) settings.Value { return settings.Reference(&d.AppSecret) }},
		{Key: "app_url", Bind: func(d *Destination) settings.Value { return settings.URL(&d.AppURL) }},
	},
	settings.Nest(effortTable, func(d *Destination) *Effort { return &d.Effort },
		func(f *settings.Field[Destination]) { f.Default, f.Help = "", "" }),
	settings.Table[Destination]{
		{Key: "headers", Bind: func(d *Destination) settings.Value { return headers{&d.Headers} }},
		{Key: "pass_headers", Bind: func(d *Destination) settings.Value {
			return settings.Names(&d.PassHeaders, "X-Signature", checkWholeName)
		}},
		{Key: "drop_headers", Bind: func(d *Destination) settings.Value {
			return settings.Names(&d.DropHeaders, "X-Signature", checkWholeName)
		}},
		{Key: "also_pass", Bind: func(d *Destination) settings.Value { return settings.Names(&d.AlsoPass, "X-Tenant", header.CheckPass) }},
		{Key: "order", Default: Unordered, Bind: func(d *Destination) settings.Value { return settings.Choice(&d.Order, Unordered, ByResource) }},
		{Key: "stale", Default: StaleDeliver, Bind: func(d *Destination) settings.Value {
			return settings.Choice(&d.Stale, StaleDeliver, StaleFlag, StaleDrop)
		}},
		{Key: "tls.ca", Bind: func(d *Destination) settings.Value { return settings.File(&d.TLS.CA, &d.TLS.pem.ca) }},
		{Key: "tls.cert", Bind: func(d *Destination) settings.Value { return settings.File(&d.TLS.Cert, &d.TLS.pem.cert) }},
		{Key: "tls.key", Bind: func(d *Destination) settings.Value { return settings.File(&d.TLS.Key, &d.TLS.pem.key) }},
		{Key: "tls.server_name", Bind: func(d *Destination) settings.Value { return settings.Text(&d.TLS.ServerName, checkHost) }},
	},
)

// Address returns the URL without what may be secret in it, for people.
func (d *Destination) Address() string { return settings.URL(&d.URL).Show() }

// Format writes the name.
func (d Destination) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "destination %s", d.Name) }

// where returns the place that a setting of the destination came from, or that of the destination.
func (d *Destination) where(key string) settings.Place {
	return d.origin.Where(d.at, key)
}

// own returns where the first of the settings was written that the destination does not take from all.
func (d *Destination) own(keys ...string) (settings.Place, bool) {
	for _, key := range keys {
		if g, ok := d.origin[key]; ok && g.At != (settings.Place{Name: delivery + key}) {
			return g.At, true
		}
	}
	return settings.Place{}, false
}

// changes leaves out what both take from delivery.
func (d *Destination) changes(next *Destination) []settings.Change {
	return slices.DeleteFunc(settings.Differ(d, next, destinationTable, d.origin, next.origin), func(c settings.Change) bool {
		if _, common := effortTable.Find(c.Setting); !common {
			return false
		}
		_, before := d.own(c.Setting)
		_, after := next.own(c.Setting)
		return !before && !after
	})
}
