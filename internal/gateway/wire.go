package gateway

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/provider/spec"
)

// wiring is the configuration in the words of the packages that it is for. It is not changed once it is used.
type wiring struct {
	cfg          *config.Config
	sources      []ingest.Source
	services     services
	observed     observers
	waiting      map[string]bool // sources that wait for somebody else's answer
	destinations map[string]deliver.Destination
	held         map[string]journal.Destination // the same ones, as the journal sees them
}

// wire turns the configured sources and destinations into endpoints and destinations. The destination
// of a source with a URL of its own has the source's name. What is the same as before, in a wiring that runs,
// keeps what it has learned: providers their senders' keys, destinations their connections. What needs the store
// is wired apart: services, and sources in mode observe.
func wire(cfg *config.Config, before *wiring) (*wiring, error) {
	w := &wiring{cfg: cfg, waiting: waiting(cfg), destinations: map[string]deliver.Destination{}, held: map[string]journal.Destination{}} // none is not all
	destinations := cfg.AllDestinations()
	asked := map[string][]string{} // headers, by the destination that asks for them
	for _, d := range destinations {
		asked[d.Name] = slices.Concat(d.PassHeaders, d.AlsoPass)
	}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Mode == config.Idempotent || s.Mode == config.Observe {
			continue // see services and observing
		}
		endpoint, err := newSource(s)
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", s.Name, err)
		}
		for _, to := range s.Reaches() {
			endpoint.Headers = endpoint.Headers.And(asked[to]...)
		}
		if known := before.provider(s); known != nil {
			endpoint.Provider = known
		}
		w.sources = append(w.sources, endpoint)
	}
	rules, err := headerRules(cfg)
	if err != nil {
		return nil, err
	}
	for _, d := range destinations {
		to := newDestination(d, cfg.Delivery)
		to.Rules = rules
		if to.Signers, err = newSigners(cfg, &d); err != nil {
			return nil, err
		}
		if same, ok := before.tls(&d); ok {
			to.TLS = same
		}
		w.destinations[d.Name] = to
		w.held[d.Name] = journal.Destination{Ordered: d.Order == config.ByResource, Stale: d.Stale != config.StaleDeliver}
	}
	return w, nil
}

// endpoints are those of all that is no provider's.
func (w *wiring) endpoints() []ingest.Service {
	return slices.Concat(w.services.endpoints, w.observed.endpoints)
}

// provider returns that of a source which is the same, nil if there is none.
func (w *wiring) provider(s *config.Source) hookonce.Provider {
	if w == nil {
		return nil
	}
	same := slices.ContainsFunc(w.cfg.Sources, func(old config.Source) bool { return old.Same(s) })
	i := slices.IndexFunc(w.sources, func(old ingest.Source) bool { return old.Name == s.Name })
	if !same || i < 0 {
		return nil
	}
	return w.sources[i].Provider
}

// tls returns what a destination with the same certificates uses.
func (w *wiring) tls(d *config.Destination) (*tls.Config, bool) {
	if w == nil {
		return nil, false
	}
	i := slices.IndexFunc(w.cfg.Destinations, func(old config.Destination) bool { return old.Name == d.Name && old.TLS.Same(d.TLS) })
	return w.destinations[d.Name].TLS, i >= 0
}

func newSource(s *config.Source) (ingest.Source, error) {
	p, err := s.NewProvider()
	if err != nil {
		return ingest.Source{}, err
	}
	routes, err := newRoutes(s)
	return ingest.Source{
		Name:       s.Name,
		Provider:   p,
		Headers:    p.PassedHeaders(),
		Secrets:    len(s.Secrets),
		MaxBody:    cmp.Or(s.MaxBody, p.Profile().MaxBody),
		Routes:     routes,
		DropTwins:  slices.Concat(s.Twins.Drop, droppedTwins(p.Spec())),
		TwinWindow: twinWindow(p.Spec()),
		Allow:      s.Allow,
		Rate:       s.Rate,
		Burst:      s.Burst,
		Sync:       s.Mode == config.Sync,
		Deadline:   s.Patience(),
		Open:       s.OnStoreDown == config.Open,
		OpenTypes:  s.OpenTypes,
	}, err
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

// droppedTwins returns the types whose later twins a specification drops.
func droppedTwins(s spec.Spec) (types []string) {
	for _, rule := range s.Dedup.Logical {
		if rule.Mode == spec.DropTwin {
			types = append(types, rule.Types...)
		}
	}
	return types
}

// twinWindow returns the shortest of the times within which a specification knows twins, zero if it
// states none.
func twinWindow(s spec.Spec) (shortest time.Duration) {
	for _, rule := range s.Dedup.Logical {
		if shortest == 0 || rule.Window > 0 && rule.Window < shortest {
			shortest = rule.Window
		}
	}
	return shortest
}

func newDestination(d config.Destination, all config.Delivery) deliver.Destination {
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
		Policy:      addressPolicy(all),
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

func (g *Gateway) ingestHandler(w *wiring) *ingest.Handler {
	return ingest.New(ingest.Options{
		Sources:        w.sources,
		Services:       w.endpoints(),
		Journal:        g.journal,
		Answers:        g.journal,
		Past:           g.journal,
		Forward:        g.deliver.Forward,
		MaxQueued:      w.cfg.Queue.Events,
		MaxQueuedBytes: w.cfg.Queue.Bytes,
		TrustedProxies: w.cfg.TrustedProxies,
		Now:            g.opt.Now,
		Logger:         g.opt.strange,
		Registerer:     g.opt.Registry,
		Watcher:        g.opt.Watcher,
	})
}

// relayed names the sources whose senders are answered what their destination answers.
func relayed(cfg *config.Config) map[string]bool {
	names := map[string]bool{}
	for i := range cfg.Sources {
		names[cfg.Sources[i].Name] = cfg.Sources[i].Mode == config.Sync
	}
	return names
}

func (g *Gateway) deliverOptions(w *wiring) deliver.Options {
	return deliver.Options{
		Journal:      g.journal,
		Destinations: w.destinations,
		Relayed:      relayed(w.cfg),
		Now:          g.opt.Now,
		Logger:       g.opt.Logger,
		Watcher:      g.opt.Watcher,
		Registerer:   g.opt.Registry,
	}
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

func (g *Gateway) journalOptions(ids *journal.IDs, w *wiring) engine.Options {
	return engine.Options{
		MaxBatch:     w.cfg.Queue.Batch,
		QueueEntries: w.cfg.Queue.Events,
		QueueBytes:   w.cfg.Queue.Bytes,
		Destinations: w.held,
		Records:      g.records,
		Notifier:     g.bell,
		Lease:        w.cfg.Delivery.Lease,
		Partitions:   g.partitions,
		Retention:    retention(w.cfg),
		IDs:          ids,
		Now:          g.opt.Now,
		Logger:       g.opt.Logger,
		Registerer:   g.opt.Registry,
	}
}
