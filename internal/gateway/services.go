package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/idempotency"
	"github.com/hookonce/hookonce/internal/idempotency/claimstore"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// services are the sources in mode idempotency, and what they use; nothing if there are none.
type services struct {
	endpoints  []ingest.Service
	transports []*outgoing.Transport
	claims     *claimstore.Store
	remember   map[string]time.Duration // by source of claims
}

// keeping is what services need that outlives a reload.
type keeping struct {
	services
	opt     Options
	metrics *idempotency.Metrics
	opened  map[bool]*claimstore.Store // by whether somebody waits; requests under way may use one that is not of services
}

// open builds the services of the sources in mode idempotency. It opens nothing if there are none, and
// nothing again that is open and fits.
func (k *keeping) open(ctx context.Context, p *plan, store *journalStore) (services, error) {
	if len(p.services) == 0 {
		return services{}, nil
	}
	own := services{remember: map[string]time.Duration{}}
	awaited := false
	for _, s := range p.services {
		own.remember[idempotency.ClaimSource(s.service.Name)] = s.remember
		awaited = awaited || s.service.Wait > 0
	}
	if own.claims = k.opened[awaited]; own.claims == nil {
		var err error
		if own.claims, err = openClaims(ctx, p.store, store, claimstore.Options{Remember: own.remember, Awaited: awaited, Now: k.opt.Now, Logger: k.opt.Logger}); err != nil {
			return services{}, explain(p.store.Store, err)
		}
	}
	if k.metrics == nil {
		k.metrics = idempotency.NewMetrics(k.opt.Registry)
	}
	shared := idempotency.Options{Store: own.claims, Sender: ingest.SenderOf(p.ingest.TrustedProxies), Metrics: k.metrics, Logger: k.opt.strange, Now: k.opt.Now}
	for _, s := range p.services {
		transport := deliver.NewTransport(p.policy, func(t *http.Transport) {
			t.MaxResponseHeaderBytes = 0 // the largest that net/http takes: what of it is too large to be kept is said in other words
		})
		s.service.Transport = transport
		s.endpoint.Handler = idempotency.New(s.service, shared)
		own.endpoints, own.transports = append(own.endpoints, s.endpoint), append(own.transports, transport)
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
			k.opened = map[bool]*claimstore.Store{}
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

// closeIdle leaves the connections behind that requests used until now.
func (s services) closeIdle() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// openClaims opens the store of claims in the journal's database.
func openClaims(ctx context.Context, in storePlan, store *journalStore, o claimstore.Options) (*claimstore.Store, error) {
	journal, ok := store.Store.(*sqlite.Store)
	if s, postgres := store.Store.(*pg.Store); postgres && !s.Divided() {
		return nil, fmt.Errorf("mode: idempotency: %w", ddl.ErrYugabyte)
	}
	if !ok {
		return claimstore.OpenPostgres(ctx, in.DSN, in.schema, o)
	}
	db, err := journal.DB()
	if err != nil {
		return nil, err
	}
	o.Standing = journal.Standing
	return claimstore.OpenSQLite(db, o)
}
