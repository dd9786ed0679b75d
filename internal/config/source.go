package config

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// Source is one inbound endpoint: /in/<Name>.
type Source struct {
	Name     string
	Provider string
	// Secrets verify requests; any one of them that is valid at the time suffices, so that a secret can
	// be rotated.
	Secrets []settings.Secret
	// Handshakes is set if the provider's challenges are answered.
	Handshakes bool
	// Token is the text that a handshake asks for besides the secret.
	Token settings.Secret
	// To is the URL that events are delivered to, as a destination of its own that has the name of the
	// source. Empty: see Routes.
	To string
	// SignAs, AppSecret and AppURL are for the destination To: see [Destination].
	SignAs    string
	AppSecret settings.Secret
	AppURL    string
	// Routes say which events go to which destinations. Neither To nor Routes: events are stored and
	// delivered nowhere.
	Routes []Route
	// Rate is how many requests per second are taken, and Burst how many at once. A rate of zero takes
	// all; a burst of zero is twice the rate.
	Rate  float64
	Burst int
	// ExpectEvery is within which time something is expected of it. Zero: what it usually sends decides.
	ExpectEvery time.Duration
	// Allow are the networks that requests may come from. None: all.
	Allow []netip.Prefix
	// LogicalDuplicates says what happens to distinct events for one change.
	LogicalDuplicates LogicalDuplicates
	// Mode is [Async], [Sync], [Observe] or [Idempotent].
	Mode string
	// Idempotency is for mode Idempotent.
	Idempotency Idempotency
	// Deadline is how long a sender may be kept waiting. Zero: see [Source.Patience].
	Deadline time.Duration
	// OnStoreDown is [Closed] or [Open].
	OnStoreDown string
	// OpenTypes are patterns for the types of events that Open is for. None: all.
	OpenTypes []string
	// Trace is [LinkTrace] or [TrustTrace].
	Trace string
	// Retention has the periods of the source's own. Zero: see [Config.RetentionOf].
	Retention Retention
	// URL is the public address of the endpoint, for providers that sign it.
	URL string
	// MaxBody is the largest body that is read, in bytes. Zero: the provider's own limit.
	MaxBody int64
	// Tolerance is how far a signed timestamp may be from now. Zero: what the provider recommends.
	Tolerance time.Duration
	// HMAC configures the provider "hmac" and is zero for others.
	HMAC HMAC
	// Reconcile is about the list that the sender has of what it made.
	Reconcile Reconcile
	// Spec is the specification of the provider "custom" and nil for others.
	Spec *spec.Spec

	own      *Destination   // the settings of To, where it has some of its own
	specNode *settings.Node // of Spec; nil: there is none
	origin   settings.Layer
	at       settings.Place
}

// LogicalDuplicates says what happens to the second of two events for one change. It is delivered with a header
// that says so, unless its type is listed here.
type LogicalDuplicates struct {
	// Drop are the types that are stored and not delivered.
	Drop []string
}

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

// sourceTable declares every setting of a source. In the environment and on the command line they
// describe the one source that --source names.
var sourceTable = slices.Concat(
	settings.Table[Source]{
		{Key: "name", Flag: "source", Help: "`name` of the source that the following flags describe or override",
			Bind: func(s *Source) settings.Value { return settings.Text(&s.Name, checkName) }},
		{Key: "provider", Help: "`name` of the provider that sends to it, such as stripe",
			Bind: func(s *Source) settings.Value { return settings.Text(&s.Provider, checkProvider) }},
		{Key: "secrets", Flag: "secret", Help: "its secret as a `reference`: env:NAME or file:PATH; repeat while rotating",
			Bind: func(s *Source) settings.Value { return settings.RotatingReferences(&s.Secrets) }},
		{Key: "to", Help: "`URL` that its events are delivered to",
			Bind: func(s *Source) settings.Value { return settings.URLOr(&s.To, insteadOfURL) }},
		{Key: "sign_as", Default: SignProvider, Help: "`whose` signature is made anew for the application at --to where it would fail: provider, or none",
			For:  func(s *Source) bool { return s.To != "" && s.own == nil && s.Mode != Idempotent },
			Bind: func(s *Source) settings.Value { return settings.Choice(&s.SignAs, SignProvider, SignNone) }},
		{Key: "app_secret", Help: "the provider's secret with which that application verifies, as a `reference`: env:NAME or file:PATH; those of the source if not set",
			Bind: func(s *Source) settings.Value { return settings.Reference(&s.AppSecret) }},
		{Key: "app_url", Help: "`URL` at which that application believes to be called, for providers that sign it; that of --to if not set",
			Bind: func(s *Source) settings.Value { return settings.URL(&s.AppURL) }},
		{Key: "rate", Help: "`number` of requests per second that are taken; no bound if not set",
			Bind: func(s *Source) settings.Value { return settings.Rate(&s.Rate, minRate, maxRate) }},
		{Key: "burst", Help: "`number` of requests that are taken at once; twice the rate if not set",
			Bind: func(s *Source) settings.Value { return settings.Count(&s.Burst, 1, 1_000_000) }},
		{Key: "allow", Help: "`network` that requests may come from; any if not set; repeatable",
			Bind: func(s *Source) settings.Value { return settings.Networks(&s.Allow) }},
		{Key: "expect_every", Help: "`time` within which something is expected of it, so that its silence is told; what it usually sends decides if not set",
			For:  func(s *Source) bool { return s.Mode != Idempotent && s.Mode != Observe },
			Bind: func(s *Source) settings.Value { return settings.Duration(&s.ExpectEvery, time.Minute, longestExpected) }},
		{Key: "logical_duplicates.drop", Help: "`type` of events that are not delivered when they are the second for one change; repeatable",
			Bind: func(s *Source) settings.Value {
				return settings.Words(&s.LogicalDuplicates.Drop, "checkout.session.completed", checkExact)
			}},
		{Key: "mode", Default: Async, Help: "`when` its sender is answered: async, when the event is stored, sync, with the destination's answer, observe, as sync, and all else is only recorded, or idempotency, for requests with an Idempotency-Key",
			Bind: func(s *Source) settings.Value { return settings.Choice(&s.Mode, Async, Sync, Observe, Idempotent) }},
		{Key: "deadline", Help: "longest `time` that its sender is kept waiting; what the provider is known to wait, less a margin, if not set",
			Bind: func(s *Source) settings.Value {
				return settings.Duration(&s.Deadline, 100*time.Millisecond, 25*time.Second)
			}},
		{Key: "on_store_down", Default: Closed, Help: "`what` happens while the store is unavailable: closed, senders are told to come again, or open, events are delivered past it",
			For:  func(s *Source) bool { return s.Mode != Idempotent && s.Mode != Observe },
			Bind: func(s *Source) settings.Value { return settings.Choice(&s.OnStoreDown, Closed, Open) }},
		{Key: "open_types", Help: "`pattern` for the types of events that on_store_down: open is for; all if not set; repeatable",
			Bind: func(s *Source) settings.Value { return settings.Names(&s.OpenTypes, "cart.*", checkPattern) }},
		{Key: "trace", Default: LinkTrace, Help: "`what` becomes of a sender's trace: link, a new one is linked to it, or trust, it goes on, and the sender says whether it is exported",
			For:  func(s *Source) bool { return s.Trace == TrustTrace },
			Bind: func(s *Source) settings.Value { return settings.Choice(&s.Trace, LinkTrace, TrustTrace) }},
		{Key: "url", Help: "its public `URL`, for providers that sign it",
			Bind: func(s *Source) settings.Value { return settings.URL(&s.URL) }},
		{Key: "handshakes", Help: "answer the provider's challenges",
			Bind: func(s *Source) settings.Value { return settings.Bool(&s.Handshakes) }},
		{Key: "token", Help: "what handshakes ask for besides the secret, as a `reference`: env:NAME or file:PATH",
			Bind: func(s *Source) settings.Value { return settings.Reference(&s.Token) }},
	},
	settings.Nest(retentionTable, func(s *Source) *Retention { return &s.Retention }, ofSource),
	settings.Table[Source]{
		{Key: "max_body", Help: "largest `size` of a request's body; the provider's own limit if not set",
			Bind: func(s *Source) settings.Value { return settings.Size(&s.MaxBody, 1, 256<<20) }},
		{Key: "tolerance", Help: "how far a signed timestamp may be from now, as a `time`; the provider's own if not set",
			Bind: func(s *Source) settings.Value { return settings.Duration(&s.Tolerance, time.Second, settings.Day) }},
	},
	settings.Nest(hmacTable, func(s *Source) *HMAC { return &s.HMAC }, func(f *settings.Field[Source]) {
		f.For = func(s *Source) bool { return s.Provider == providerHMAC }
	}),
	settings.Nest(reconcileTable, func(s *Source) *Reconcile { return &s.Reconcile }, func(f *settings.Field[Source]) {
		if f.Key != reconcileToken {
			f.For = func(s *Source) bool { return s.Reconcile.On() }
		}
	}),
	settings.Nest(idempotencyTable, func(s *Source) *Idempotency { return &s.Idempotency }, func(f *settings.Field[Source]) {
		f.For = func(s *Source) bool { return s.Mode == Idempotent }
	}),
)

// insteadOfURL says what else to write of a mere name.
func insteadOfURL(text string) string {
	if checkName(text) != nil {
		return ""
	}
	return "routes: with the name of a destination"
}

// ofSource makes of a setting of all sources one that a source can have of its own.
func ofSource(f *settings.Field[Source]) {
	meaning, _, _ := strings.Cut(f.Help, ";")
	f.Flag, f.Default, f.Help = "source-"+f.FlagName(), "", "for this source: "+meaning+"; that of all sources if not set"
}

// appKeys are what a source can say about its own destination beside the URL.
var appKeys = []string{"sign_as", "app_secret", "app_url"}

// The keys of what is no setting with a flag.
const (
	toKey     = "to" // of a destination of its own
	routesKey = "routes"
	specKey   = "spec" // has a grammar of its own
)

// DefaultSource returns a source with every setting at its default and no name.
func DefaultSource() Source {
	var s Source
	sourceTable.Reset(&s)
	return s
}

// Format writes the name and the provider.
func (s Source) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "source %s (%s)", s.Name, s.Provider) }

// where returns the place that a setting of the source came from, or that of the source.
func (s *Source) where(key string) settings.Place {
	return s.origin.Where(s.at, key)
}

// Where returns the place that a setting of the source was written at, or that of the source, for messages.
func (s *Source) Where(key string) string { return s.where(key).String() }

// has reports whether the setting was written anywhere, rightly or wrongly.
func (s *Source) has(key string) bool { return s.origin.Has(key) }

// within returns where the first setting of a group was written, and whether one was.
func (s *Source) within(group string) (settings.Place, bool) {
	return settings.Within(s.origin, sourceTable, group)
}

// Reaches returns the names of the destinations that events of the source may go to, each once.
func (s *Source) Reaches() []string {
	names := []string{}
	if s.To != "" && s.Mode != Idempotent {
		names = append(names, s.Name)
	}
	for _, r := range s.Routes {
		for _, to := range r.To {
			if !slices.Contains(names, to) {
				names = append(names, to)
			}
		}
	}
	return names
}

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

// SendsAgain returns for how long after an event the sender is known to send it again: by itself, and when a person asks for
// it. Zero: it does not, or that is not known.
func (s *Source) SendsAgain() (byItself, onDemand time.Duration) {
	known, err := s.spec()
	if err != nil {
		return 0, 0
	}
	return known.Limits.Retry, known.Limits.Manual
}

// Lists reports whether an API of the source's sender is known that lists what it made, and returns what the sender is called.
func (s *Source) Lists() (sender string, listed bool) {
	known, err := s.spec()
	if err != nil { // an idempotency source has no sender that anybody knows
		return "its sender", false
	}
	return cmp.Or(known.Title, s.Provider, "its sender"), known.Reconcile != nil
}

// NewProvider returns the source's provider with its secrets.
func (s *Source) NewProvider() (*spec.Provider, error) {
	return s.build(s.providerSettings(s.Secrets...))
}

// NewTimelessProvider is [Source.NewProvider], but any signed time will do. It returns nil if the provider signs none.
func (s *Source) NewTimelessProvider() (*spec.Provider, error) {
	known, err := s.spec()
	if err != nil || !slices.ContainsFunc(known.Verify, func(v spec.Verify) bool { return v.Time != nil }) {
		return nil, err
	}
	own := s.providerSettings(s.Secrets...)
	own.Tolerance = forever
	return s.build(own)
}

// providerSettings is what the source adds to its provider, with the given secrets.
func (s *Source) providerSettings(secrets ...settings.Secret) spec.Settings {
	own := spec.Settings{URL: s.URL, Tolerance: s.Tolerance, Handshakes: s.Handshakes, Token: s.Token.Reveal()}
	for _, secret := range secrets {
		own.Secrets = append(own.Secrets, spec.Secret{Text: secret.Reveal(), From: secret.From, Until: secret.Until})
	}
	return own
}

func (s *Source) build(own spec.Settings) (*spec.Provider, error) {
	known, err := s.spec()
	if err != nil {
		return nil, err
	}
	return spec.New(known, own)
}

// spec returns what is known about the source's provider, with its defaults.
func (s *Source) spec() (known spec.Spec, err error) {
	switch {
	case s.Provider == providerHMAC:
		known = s.HMAC.spec()
	case s.Provider != providerCustom:
		known, err = provider.Lookup(s.Provider)
	case s.Spec == nil:
		err = fmt.Errorf("source %q lacks its specification", s.Name)
	default:
		known = *s.Spec
	}
	return known.WithDefaults(), err
}

// Fields returns what reads the fields of the source's events, in their order.
func (s *Source) Fields(values ...spec.Value) (*spec.Fields, error) {
	known, err := s.spec()
	if err != nil {
		return nil, err
	}
	return known.Fields(values...)
}

// MakeSecret makes up a secret in the form that the source's provider has, for a sender that can be told it or
// imitated. It is an error if there can be none: the provider signs with a key that only it has, or with
// something that has to be looked up.
func (s *Source) MakeSecret() (string, error) {
	known, err := s.spec()
	if err != nil {
		return "", err
	}
	random := make([]byte, 24)
	rand.Read(random)                         // never fails
	secret := hex.EncodeToString(random[:16]) // good as text, as hexadecimal and as base64
	if strings.Contains(known.Secret, "whsec_") {
		secret = "whsec_" + base64.StdEncoding.EncodeToString(random)
	}
	if !known.Imitable() {
		return "", fmt.Errorf("%s signs with a key that only it has", known.Title)
	}
	_, err = s.build(spec.Settings{Secrets: spec.Secrets(secret)})
	return secret, err
}

// greets reports whether the source's provider sends a challenge before it registers an address, for whose
// answer nothing more is needed.
func (s *Source) greets() bool {
	known, err := s.spec()
	if err != nil || len(known.Handshakes) == 0 {
		return false
	}
	secret, err := s.MakeSecret() // any will do
	if err != nil {
		return false
	}
	own := s.providerSettings(settings.Literal(secret))
	own.Handshakes, own.Tolerance = true, 0
	_, err = s.build(own)
	return err == nil
}

// destination returns the one that a group to describes.
func (s *Source) destination() Destination {
	d := *s.own
	d.Name, d.URL = s.Name, s.To
	d.origin = maps.Clone(d.origin)
	maps.Copy(d.origin, s.said())
	if s.has("sign_as") {
		d.SignAs = s.SignAs
	}
	if s.has("app_secret") {
		d.AppSecret = s.AppSecret
	}
	if s.AppURL != "" {
		d.AppURL = s.AppURL
	}
	return d
}

// said is where the source says something about its own destination.
func (s *Source) said() settings.Layer {
	says := settings.Layer{}
	for _, key := range appKeys {
		if g, ok := s.origin[key]; ok {
			says[key] = g
		}
	}
	if g, ok := s.origin[toKey]; ok {
		says["url"] = g
	}
	return says
}

// Same reports whether nothing of the source's own is different in other.
func (s *Source) Same(other *Source) bool { return s.Name == other.Name && len(s.changes(other)) == 0 }

// SameProvider reports whether [Source.NewProvider] makes the same of both. What the catalogue says of a provider is the same for
// all, and not compared: some of it is a function.
func (s *Source) SameProvider(other *Source) bool {
	same := s.Provider == other.Provider && reflect.DeepEqual(s.providerSettings(s.Secrets...), other.providerSettings(other.Secrets...))
	switch s.Provider {
	case providerHMAC:
		return same && reflect.DeepEqual(s.HMAC, other.HMAC)
	case providerCustom:
		return same && reflect.DeepEqual(s.Spec, other.Spec)
	}
	return same
}

func (s *Source) changes(next *Source) []settings.Change {
	all := settings.Differ(s, next, sourceTable, s.origin, next.origin)
	if !slices.EqualFunc(s.Routes, next.Routes, func(a, b Route) bool {
		return len(settings.Differ(&a, &b, routeTable, nil, nil)) == 0
	}) {
		all = append(all, settings.Change{Setting: routesKey, Text: routesKey + " changed" + settings.Counts(len(s.Routes), len(next.Routes))})
	}
	all = append(all, s.ownChanges(next)...)
	if !reflect.DeepEqual(s.Spec, next.Spec) {
		all = append(all, settings.Change{Setting: specKey, Text: specKey + " changed"})
	}
	return all
}

// ownChanges returns what is different in the group to of another.
func (s *Source) ownChanges(next *Source) (all []settings.Change) {
	if s.own == nil || next.own == nil {
		if s.own != next.own {
			all = append(all, settings.Change{Setting: toKey, Text: toKey + " changed"})
		}
		return all
	}
	for _, c := range s.own.changes(next.own) {
		c.Setting, c.Text = toKey+"."+c.Setting, toKey+"."+c.Text
		all = append(all, c)
	}
	return all
}

// print writes the settings of the source. Those of its own destination stand below to.
func (s *Source) print(p *settings.Printer) {
	if s.own == nil {
		settings.Print(p, s, sourceTable, s.origin)
	} else {
		settings.Print(p, s, sourceTable.Without(toKey), s.origin)
		own := s.destination()
		p.Group(toKey, "", func() { settings.Print(p, &own, destinationTable.Without("name"), own.origin) })
	}
	p.List(routesKey, len(s.Routes), func(i int) { settings.Print(p, &s.Routes[i], routeTable, s.Routes[i].origin) })
	if s.Spec == nil {
		return
	}
	text, err := specyaml.Marshal(*s.Spec)
	if err != nil { // what was read from YAML has a form in it
		return
	}
	p.Group(specKey, s.where(specKey).String(), func() {
		for line := range strings.Lines(string(text)) {
			p.Line(strings.TrimSuffix(line, "\n"), "")
		}
	})
}
