package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/idempotency"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/observe"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/reconcile/schedule"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/tracing"
	"github.com/hookonce/hookonce/provider/spec"
)

// plan is the configuration in the words of the packages that it is for. The gateway goes by the plan alone:
// a setting that is not in here has no effect.
type plan struct {
	cfg *config.Config // for what people are told about it

	listen, admin string
	adminTLS      *tls.Config // nil: it speaks plain HTTP
	store         storePlan
	stopTimeout   time.Duration
	stopDelay     time.Duration
	logLevel      slog.Level
	tokens        []api.Token
	payloads      api.Form
	connections   connlimit.Limits // from providers, however many descriptors there are
	policy        deliver.AddressPolicy
	waiting       map[string]bool  // sources that wait for somebody else's answer
	services      []servicePlan    // sources in mode idempotency
	observed      []observe.Source // sources in mode observe
	telling       telling          // of alerts
	tracing       tracing.Options  // without a URL nothing is traced
	alerts        alerting.Settings
	expected      map[string]time.Duration // sources of which something is expected within that time
	capacity      int64                    // bytes that the store may grow to; 0: nobody said
	reconciled    []schedule.Source        // compared with their senders' lists; Ingest is not set
	stored        map[string]bool          // those of them whose missing events are stored
	senders       *outgoing.Transport      // to the APIs of senders
	cell          cellPlan

	// What is configured of these; the gateway adds what runs.
	ingest  ingest.Options
	journal engine.Options
	deliver deliver.Options
}

// storePlan says where the tables are.
type storePlan struct {
	config.Store
	schema  string
	migrate bool
	read    config.Store // a standby of it; the zero value: there is none
}

// servicePlan is a service behind keys: how it is admitted to, how it is treated, and how long its answers are kept.
type servicePlan struct {
	endpoint ingest.Service
	service  idempotency.Service
	remember time.Duration
}

// Bounds that nobody has to choose: they are as good for a small gateway as for a large one.
const (
	maxReading    = 128 << 20        // bodies of requests under way, in bytes
	bodyTimeout   = 10 * time.Second // in which a body has to arrive
	acceptTimeout = 5 * time.Second  // that a sender waits for the journal

	maxHeld        = 4096             // deliveries in flight
	maxHeldBytes   = 64 << 20         // of their headers and bodies
	doneKeys       = 16384            // finished keys that are remembered, some 5 MB when full
	journalPoll    = time.Second      // the longest time between two looks for work that is due
	journalTimeout = 10 * time.Second // of one call of the store
)

// newPlan turns the configuration into a plan. What needs the store is opened apart: services, and sources in
// mode observe. What is the same as before, in a plan that runs, keeps what it has learned: providers their
// senders' keys, destinations their connections.
func newPlan(cfg *config.Config, before *plan) (*plan, error) {
	p := &plan{
		cfg:         cfg,
		listen:      cfg.Listen,
		admin:       cfg.Admin,
		adminTLS:    cfg.AdminTLS.Config(),
		store:       storePlan{cfg.Store, cfg.Schema, cfg.Migrate, cfg.StoreRead},
		stopTimeout: cfg.ShutdownTimeout,
		stopDelay:   cfg.ShutdownDelay,
		logLevel:    cfg.LogLevel,
		tokens:      adminTokens(cfg),
		payloads:    api.Form(cfg.AdminPayloads),
		connections: connlimit.Limits{Max: cfg.MaxConnections, PerAddress: cfg.MaxConnectionsPerAddress, Exempt: cfg.TrustedProxies},
		policy:      addressPolicy(cfg.Delivery),
		waiting:     map[string]bool{},
		stored:      map[string]bool{},
		tracing:     traces(&cfg.Tracing),
		ingest: ingest.Options{
			MaxReading: maxReading, MaxQueued: cfg.Queue.Events, MaxQueuedBytes: cfg.Queue.Bytes,
			BodyTimeout: bodyTimeout, AcceptTimeout: acceptTimeout, TrustedProxies: cfg.TrustedProxies,
		},
		journal: engine.Options{
			MaxBatch: cfg.Queue.Batch, QueueEntries: cfg.Queue.Events, QueueBytes: cfg.Queue.Bytes,
			MaxHeld: maxHeld, HeldBytes: maxHeldBytes, DoneKeys: doneKeys,
			Lease: cfg.Delivery.Lease, Poll: journalPoll, Timeout: journalTimeout, Retention: retention(cfg),
			Destinations: map[string]journal.Destination{}, // none is not all
		},
		deliver: deliver.Options{Destinations: map[string]deliver.Destination{}, Relayed: map[string]time.Duration{}},
	}
	var err error
	if p.telling, err = newTelling(cfg, p.policy); err != nil {
		return nil, err
	}
	p.senders = deliver.NewTransport(p.policy)
	p.alerts, p.expected, p.capacity = alertSettings(cfg, p.telling.addresses), map[string]time.Duration{}, cfg.Alerts.StoreCapacity
	for i := range cfg.Sources {
		p.expected[cfg.Sources[i].Name] = cfg.Sources[i].ExpectEvery
	}
	if err := p.planSources(before); err != nil {
		return nil, err
	}
	if err := p.planDestinations(before); err != nil {
		return nil, err
	}
	p.planCells()
	return p, nil
}

// planSources turns the configured sources into endpoints.
func (p *plan) planSources(before *plan) error {
	asked := map[string][]string{} // headers, by the destination that asks for them
	for _, d := range p.cfg.AllDestinations() {
		asked[d.Name] = slices.Concat(d.PassHeaders, d.AlsoPass)
	}
	for i := range p.cfg.Sources {
		s := &p.cfg.Sources[i]
		if s.Mode == config.Sync {
			p.deliver.Relayed[s.Name] = s.Patience()
		}
		if s.Mode == config.Observe || s.Mode == config.Idempotent {
			p.waiting[s.Name] = true
		}
		if err := p.planSource(s, asked, before); err != nil {
			return fmt.Errorf("source %q: %w", s.Name, err)
		}
	}
	return nil
}

func (p *plan) planSource(s *config.Source, asked map[string][]string, before *plan) error {
	switch s.Mode {
	case config.Idempotent:
		service, err := newService(s, p.cfg.TrustedProxies)
		p.services = append(p.services, service)
		return err
	case config.Observe:
		source, err := newObserved(s)
		p.observed = append(p.observed, source)
		return err
	}
	endpoint, err := newSource(s)
	if err != nil {
		return err
	}
	for _, to := range s.Reaches() {
		endpoint.Headers = endpoint.Headers.And(asked[to]...)
	}
	if known := before.provider(s); known != nil {
		endpoint.Provider = known
	}
	p.ingest.Sources = append(p.ingest.Sources, endpoint)
	return p.planReconcile(s, before)
}

// planDestinations turns the configured destinations into those of package deliver. That of a source with a
// URL of its own has the source's name.
func (p *plan) planDestinations(before *plan) error {
	rules, err := headerRules(p.cfg)
	if err != nil {
		return err
	}
	for _, d := range p.cfg.AllDestinations() {
		to := newDestination(d, p.policy)
		to.Rules = rules
		if to.HTTPKeys, err = d.HTTPKeys(); err != nil {
			return fmt.Errorf("destination %q: http_signature: %w", d.Name, err)
		}
		if to.Signers, err = newSigners(p.cfg, &d); err != nil {
			return err
		}
		if same, ok := before.tls(&d); ok {
			to.TLS = same
		}
		p.deliver.Destinations[d.Name] = to
		p.journal.Destinations[d.Name] = journal.Destination{Ordered: d.Order == config.ByResource, Stale: d.Stale != config.StaleDeliver}
	}
	return nil
}

// open reports whether events of some source are delivered past a store that is away.
func (p *plan) open() bool {
	return slices.ContainsFunc(p.ingest.Sources, func(s ingest.Source) bool { return s.Open })
}

// provider returns that of the source of that name, nil if there is none or it has changed. A provider has fetched its
// sender's keys, which may be away now, and knows what came.
func (p *plan) provider(s *config.Source) hookonce.Provider {
	if !p.sameProvider(s) {
		return nil
	}
	i := slices.IndexFunc(p.ingest.Sources, func(old ingest.Source) bool { return old.Name == s.Name })
	if i < 0 {
		return nil
	}
	return p.ingest.Sources[i].Provider
}

// sameProvider reports whether there is a source of that name whose provider is the same.
func (p *plan) sameProvider(s *config.Source) bool {
	return p != nil && slices.ContainsFunc(p.cfg.Sources, func(old config.Source) bool { return old.Name == s.Name && old.SameProvider(s) })
}

// tls returns what a destination with the same certificates uses.
func (p *plan) tls(d *config.Destination) (*tls.Config, bool) {
	if p == nil {
		return nil, false
	}
	same := slices.ContainsFunc(p.cfg.AllDestinations(), func(old config.Destination) bool { return old.Name == d.Name && old.TLS.Same(d.TLS) })
	return p.deliver.Destinations[d.Name].TLS, same
}

func newSource(s *config.Source) (ingest.Source, error) {
	p, err := s.NewProvider()
	if err != nil {
		return ingest.Source{}, err
	}
	routes, err := newRoutes(s)
	return ingest.Source{
		Name:                   s.Name,
		Provider:               p,
		Headers:                p.PassedHeaders(),
		Secrets:                len(s.Secrets),
		MaxBody:                maxBody(s, p),
		Routes:                 routes,
		DropLogicalDuplicates:  slices.Concat(s.LogicalDuplicates.Drop, droppedLogicalDuplicates(p.Spec())),
		LogicalDuplicateWindow: logicalDuplicateWindow(p.Spec()),
		Allow:                  s.Allow,
		Rate:                   s.Rate,
		Burst:                  s.Burst,
		Sync:                   s.Mode == config.Sync,
		Deadline:               s.Patience(),
		Open:                   s.OnStoreDown == config.Open,
		OpenTypes:              s.OpenTypes,
		TrustTrace:             s.Trace == config.TrustTrace,
	}, err
}

// maxBody is the largest body in bytes that a source takes, in this order: the setting max_body of the source, what its
// provider is known to send, the default of the library. The provider is nil for a service, which has none. No limit of
// the server's comes before it; [ingest.Options] bounds besides what all bodies together take of the memory.
func maxBody(s *config.Source, p hookonce.Provider) int64 {
	var sent int64
	if p != nil {
		sent = p.Profile().MaxBody
	}
	return cmp.Or(s.MaxBody, sent, hookonce.DefaultMaxBody)
}

// serviceTimeout is how long a service may take that has no deadline.
const serviceTimeout = 25 * time.Second

func newService(s *config.Source, proxies []netip.Prefix) (servicePlan, error) {
	to, err := url.Parse(s.To)
	limit := maxBody(s, nil)
	own := s.Idempotency
	return servicePlan{
		endpoint: ingest.Service{
			Name: s.Name, MaxBody: limit, MaxAnswer: own.MaxAnswer, Allow: s.Allow, Rate: s.Rate, Burst: s.Burst,
			Keeps: idempotency.Keeps,
		},
		service: idempotency.Service{
			Name:           s.Name,
			URL:            to,
			TrustedProxies: proxies,
			Scope:          own.ScopeHeaders(),
			Fingerprint:    own.Headers,
			StrictKey:      own.StrictKey,
			OptionalKey:    own.OptionalKey,
			MaxBody:        limit,
			MaxAnswer:      int(own.MaxAnswer),
			Timeout:        cmp.Or(s.Deadline, serviceTimeout),
			Wait:           own.Wait,
			Lease:          own.Lease,
			NewKeys:        own.NewKeys,
			Documentation:  own.Documentation,
		},
		remember: own.Remember,
	}, err
}

func newObserved(s *config.Source) (observe.Source, error) {
	to, err := url.Parse(s.To)
	if err != nil {
		return observe.Source{}, err
	}
	p, err := s.NewProvider()
	if err != nil {
		return observe.Source{}, err
	}
	timeless, err := s.NewTimelessProvider()
	if err != nil {
		return observe.Source{}, err
	}
	source := observe.Source{
		Name: s.Name, To: to, Provider: p,
		Deadline: s.GivesUp(), MaxBody: maxBody(s, p),
	}
	if timeless != nil {
		source.Timeless = hookonce.Provider(timeless)
	}
	return source, nil
}

func newRoutes(s *config.Source) ([]ingest.Route, error) {
	if s.To != "" {
		return []ingest.Route{{To: []string{s.Name}}}, nil
	}
	var routes []ingest.Route
	for i := range s.Routes {
		r := &s.Routes[i]
		route := ingest.Route{To: r.To, Types: r.Types}
		var values []spec.Value
		for _, m := range r.Where {
			values, route.Where.Texts = append(values, m.Field), append(route.Where.Texts, m.Text)
		}
		if len(values) > 0 {
			fields, err := s.Fields(values...)
			if err != nil {
				return nil, fmt.Errorf("route %d: %w", i+1, err)
			}
			route.Where.Fields = fields
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// droppedLogicalDuplicates returns the types whose later logical duplicates a specification drops.
func droppedLogicalDuplicates(s spec.Spec) (types []string) {
	for _, rule := range s.Dedup.Logical {
		if rule.Mode == spec.DropLogicalDuplicate {
			types = append(types, rule.Types...)
		}
	}
	return types
}

// logicalDuplicateWindow returns the shortest of the times within which a specification knows logical duplicates, zero if it
// states none.
func logicalDuplicateWindow(s spec.Spec) (shortest time.Duration) {
	for _, rule := range s.Dedup.Logical {
		if shortest == 0 || rule.Window > 0 && rule.Window < shortest {
			shortest = rule.Window
		}
	}
	return shortest
}

func newDestination(d config.Destination, policy deliver.AddressPolicy) deliver.Destination {
	to := deliver.Destination{
		Name:        d.Name,
		URL:         d.URL,
		Timeout:     d.Timeout,
		Schedule:    retry.Schedule{Attempts: d.Attempts, First: d.Backoff, Longest: d.BackoffMax, Factor: retry.Factor},
		GiveUp:      d.GiveUp,
		Concurrency: d.Concurrency,
		Rate:        d.Rate,
		Permanent:   d.Permanent,
		Header:      http.Header{},
		PassHeader:  d.PassHeaders,
		DropHeader:  d.DropHeaders,
		AlsoPass:    d.AlsoPass,
		TLS:         d.TLS.Config(),
		Stale:       deliver.StalePolicy(d.Stale),
		Policy:      policy,
		AppURL:      d.AppURL,
	}
	if d.Breaker {
		to.Breaker = deliver.Breaker{Failures: d.BreakerFailures, Pause: d.BreakerPause, PauseMax: d.BreakerPauseMax}
	}
	for _, h := range d.Headers {
		to.Header.Set(h.Name, h.Value.Reveal())
	}
	for _, s := range d.Secrets {
		to.Secrets = append(to.Secrets, s.Reveal())
	}
	return to
}

// headerRules returns which headers of the sources' events are passed on, by the name of the source.
func headerRules(cfg *config.Config) (map[string]*header.Rule, error) {
	rules := map[string]*header.Rule{}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Mode == config.Idempotent {
			continue
		}
		p, err := s.NewProvider()
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", s.Name, err)
		}
		rules[s.Name] = p.PassedHeaders()
	}
	return rules, nil
}

// newSigners returns what makes the signatures of the providers anew for a destination that wants them. One that gets
// no events of a source now may have some waiting that it got before.
func newSigners(cfg *config.Config, d *config.Destination) (map[string]deliver.Signer, error) {
	if d.SignAs != config.SignProvider {
		return nil, nil
	}
	signers := map[string]deliver.Signer{}
	named := slices.ContainsFunc(cfg.Destinations, func(other config.Destination) bool { return other.Name == d.Name })
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Mode == config.Idempotent || !named && s.Name != d.Name {
			continue
		}
		p, err := s.NewProvider()
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", s.Name, err)
		}
		signer, err := p.Resigner(spec.Receiver{Secret: d.AppSecret.Reveal(), URL: d.AppURL})
		switch {
		case err == nil:
			signers[s.Name] = signer
		case slices.Contains(s.Reaches(), d.Name):
			return nil, fmt.Errorf("destination %q: app_secret: source %q: %w", d.Name, s.Name, err)
		}
	}
	return signers, nil
}

// addressPolicy says which addresses may be connected to.
func addressPolicy(all config.Delivery) deliver.AddressPolicy {
	p := deliver.AddressPolicy{DenyPrivate: !all.AllowPrivate}
	for _, port := range all.Ports {
		p.Ports = append(p.Ports, uint16(port))
	}
	return p
}

// retention returns how long what is kept, of the sources that have periods of their own by name.
func retention(cfg *config.Config) *journal.Retention {
	period := func(s *config.Source) journal.Period {
		r := cfg.RetentionOf(s)
		return journal.Period{IDs: r.IDs, Bodies: r.Bodies, Attempts: r.Attempts, Answers: r.Answers}
	}
	r := &journal.Retention{Period: period(&config.Source{}), Sources: map[string]journal.Period{}, Audits: cfg.RetentionAudits}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Retention != (config.Retention{}) {
			r.Sources[s.Name] = period(s)
		}
	}
	return r
}

// traces says what is traced.
func traces(t *config.Tracing) tracing.Options {
	if !t.On() {
		return tracing.Options{}
	}
	return tracing.Options{URL: t.URL(), Header: t.Header, Secret: t.Secret.Reveal(), TLS: t.TLS.Config(), Ratio: t.Ratio, Service: t.Service}
}

// newTracer returns what makes the spans, nil if nothing is traced.
func newTracer(ctx context.Context, p *plan, o Options) (*tracing.Tracer, error) {
	if p.tracing.URL == "" {
		return nil, nil
	}
	own := p.tracing
	own.Version, own.Registerer, own.Logger = o.Version, o.Registry, o.Logger
	return tracing.New(ctx, own)
}

func adminTokens(cfg *config.Config) (tokens []api.Token) {
	for _, t := range cfg.AdminTokens {
		tokens = append(tokens, api.Token{Name: t.Name, Secret: t.Token.Reveal(), Role: api.Role(t.Role), Payloads: t.Payloads})
	}
	return tokens
}
