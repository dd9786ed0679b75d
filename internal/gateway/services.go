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

// services are the sources in mode idempotency, and what they keep; nil if there are none.
type services struct {
	endpoints  []ingest.Service
	transports []*http.Transport
	claims     *claims.Store
}

// openServices builds the services of the sources in mode idempotency. It opens nothing if there are none.
func (g *Gateway) openServices(ctx context.Context) (err error) {
	var all []*config.Source
	kept := claims.Options{Remember: map[string]time.Duration{}, Now: g.opt.Now, Logger: g.opt.Logger}
	for i := range g.cfg.Sources {
		if s := &g.cfg.Sources[i]; s.Mode == config.Idempotent {
			all = append(all, s)
			kept.Remember[idempotency.ClaimSource(s.Name)] = s.Idempotency.WithDefaults().Remember
			kept.Awaited = kept.Awaited || s.Idempotency.Wait > 0
		}
	}
	if len(all) == 0 {
		return nil
	}
	if g.services.claims, err = g.openClaims(ctx, kept); err != nil {
		return explain(g.cfg.Store, err)
	}
	shared := idempotency.Options{Store: g.services.claims, Metrics: idempotency.NewMetrics(g.opt.Registry), Logger: g.opt.Logger, Now: g.opt.Now}
	for _, s := range all {
		endpoint, err := g.newService(s, shared)
		if err != nil {
			return fmt.Errorf("source %q: %w", s.Name, err)
		}
		g.services.endpoints = append(g.services.endpoints, endpoint)
	}
	return nil
}

// openClaims opens the store of claims in the journal's database.
func (g *Gateway) openClaims(ctx context.Context, o claims.Options) (*claims.Store, error) {
	journal, ok := g.store.(*sqlite.Store)
	if !ok {
		return claims.OpenPostgres(ctx, g.cfg.Store.DSN, g.cfg.Schema, o)
	}
	db, err := journal.DB()
	if err != nil {
		return nil, err
	}
	return claims.OpenSQLite(db, o)
}

func (g *Gateway) newService(s *config.Source, shared idempotency.Options) (ingest.Service, error) {
	to, err := url.Parse(s.To)
	if err != nil {
		return ingest.Service{}, err
	}
	maxBody := cmp.Or(s.MaxBody, ingest.DefaultMaxBody)
	own := s.Idempotency.WithDefaults()
	transport := deliver.NewTransport(addressPolicy(g.cfg.Delivery))
	g.services.transports = append(g.services.transports, transport)
	return ingest.Service{
		Name: s.Name, MaxBody: maxBody, MaxAnswer: own.MaxAnswer, Allow: s.Allow, Rate: s.Rate, Burst: s.Burst,
		Handler: idempotency.New(idempotency.Service{
			Name:           s.Name,
			URL:            to,
			Transport:      transport,
			TrustedProxies: g.cfg.TrustedProxies,
			Scope:          own.ScopeHeaders(),
			Fingerprint:    own.Headers,
			StrictKey:      own.StrictKey,
			OptionalKey:    own.OptionalKey,
			MaxBody:        maxBody,
			MaxAnswer:      int(own.MaxAnswer),
			Timeout:        cmp.Or(s.Deadline, serviceTimeout),
			Wait:           own.Wait,
			Lease:          own.Lease,
			Documentation:  own.Documentation,
		}, shared),
	}, nil
}

// closeServices stops what openServices started, after the last request.
func (g *Gateway) closeServices() {
	for _, t := range g.services.transports {
		t.CloseIdleConnections()
	}
	if g.services.claims != nil {
		g.services.claims.Close()
	}
}
