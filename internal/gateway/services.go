package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/hookonce/hookonce/internal/claims"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/idempotency"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// serviceTimeout is how long a service may take that has no deadline.
const serviceTimeout = 25 * time.Second

// services are the sources in mode idempotency, and what they use; nothing if there are none.
type services struct {
	endpoints  []ingest.Service
	transports []*http.Transport
	claims     *claims.Store
	remember   map[string]time.Duration // by source of claims
}

// keeping is what services need that outlives a reload.
type keeping struct {
	services
	metrics *idempotency.Metrics
	opened  map[bool]*claims.Store // by whether somebody waits; requests under way may use one that is not of services
}

// openServices builds the services of the sources in mode idempotency. It opens nothing if there are none, and
// nothing again that is open and fits.
func (g *Gateway) openServices(ctx context.Context, cfg *config.Config) (services, error) {
	var all []*config.Source
	own := services{remember: map[string]time.Duration{}}
	awaited := false
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == config.Idempotent {
			all = append(all, s)
			own.remember[idempotency.ClaimSource(s.Name)] = s.Idempotency.Remember
			awaited = awaited || s.Idempotency.Wait > 0
		}
	}
	if len(all) == 0 {
		return services{}, nil
	}
	if own.claims = g.kept.opened[awaited]; own.claims == nil {
		var err error
		if own.claims, err = g.openClaims(ctx, cfg, claims.Options{Remember: own.remember, Awaited: awaited, Now: g.opt.Now, Logger: g.opt.Logger}); err != nil {
			return services{}, explain(cfg.Store, err)
		}
	}
	if g.kept.metrics == nil {
		g.kept.metrics = idempotency.NewMetrics(g.opt.Registry)
	}
	shared := idempotency.Options{Store: own.claims, Sender: ingest.SenderOf(cfg.TrustedProxies), Metrics: g.kept.metrics, Logger: g.opt.strange, Now: g.opt.Now}
	for _, s := range all {
		endpoint, transport, err := newService(cfg, s, shared)
		if err != nil {
			g.kept.discard(own)
			return services{}, fmt.Errorf("source %q: %w", s.Name, err)
		}
		own.endpoints, own.transports = append(own.endpoints, endpoint), append(own.transports, transport)
	}
	return own, nil
}

// use makes these the services that run.
func (k *keeping) use(s services) {
	before := k.services
	k.services = s
	if before.claims != nil && before.claims != s.claims {
		before.claims.Remember(nil)
	}
	if s.claims != nil {
		s.claims.Remember(s.remember)
		if k.opened == nil {
			k.opened = map[bool]*claims.Store{}
		}
		k.opened[s.claims.Awaited()] = s.claims
	}
	before.closeIdle()
}

// discard closes what was opened for services that are not used after all.
func (k *keeping) discard(s services) {
	if s.claims != nil && s.claims != k.opened[s.claims.Awaited()] {
		s.claims.Close()
	}
}

// close stops what services use, after the last request.
func (k *keeping) close() {
	k.closeIdle()
	for _, s := range k.opened {
		s.Close()
	}
}

// closeIdle closes connections that no request uses.
func (s services) closeIdle() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// openClaims opens the store of claims in the journal's database.
func (g *Gateway) openClaims(ctx context.Context, cfg *config.Config, o claims.Options) (*claims.Store, error) {
	journal, ok := g.store.(*sqlite.Store)
	if !ok {
		return claims.OpenPostgres(ctx, cfg.Store.DSN, cfg.Schema, o)
	}
	db, err := journal.DB()
	if err != nil {
		return nil, err
	}
	o.Standing = journal.Standing
	return claims.OpenSQLite(db, o)
}

func newService(cfg *config.Config, s *config.Source, shared idempotency.Options) (ingest.Service, *http.Transport, error) {
	to, err := url.Parse(s.To)
	if err != nil {
		return ingest.Service{}, nil, err
	}
	maxBody := cmp.Or(s.MaxBody, ingest.DefaultMaxBody)
	own := s.Idempotency
	transport := deliver.NewTransport(addressPolicy(cfg.Delivery))
	return ingest.Service{
		Name: s.Name, MaxBody: maxBody, MaxAnswer: own.MaxAnswer, Allow: s.Allow, Rate: s.Rate, Burst: s.Burst,
		Keeps: idempotency.Keeps,
		Handler: idempotency.New(idempotency.Service{
			Name:           s.Name,
			URL:            to,
			Transport:      transport,
			TrustedProxies: cfg.TrustedProxies,
			Scope:          own.ScopeHeaders(),
			Fingerprint:    own.Headers,
			StrictKey:      own.StrictKey,
			OptionalKey:    own.OptionalKey,
			MaxBody:        maxBody,
			MaxAnswer:      int(own.MaxAnswer),
			Timeout:        cmp.Or(s.Deadline, serviceTimeout),
			Wait:           own.Wait,
			Lease:          own.Lease,
			NewKeys:        own.NewKeys,
			Documentation:  own.Documentation,
		}, shared),
	}, transport, nil
}
