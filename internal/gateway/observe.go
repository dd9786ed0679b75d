package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/observe"
)

// observing are the sources in mode observe, and what records them.
type observing struct {
	endpoints  []ingest.Service
	forwarders []*observe.Forwarder
	transports []*http.Transport
	metrics    *observe.Metrics
	recorder   *observe.Recorder
	store      *observe.Store
}

// openObserving builds the sources in mode observe. It asks nothing of the store. Where no source is observed any more,
// what is on record is forgotten in time.
func (g *Gateway) openObserving() (err error) {
	o := &g.observing
	if o.store, err = openObservations(g.cfg, false); err != nil {
		return explain(g.cfg.Store, err)
	}
	o.metrics = observe.NewMetrics(g.opt.Registry)
	o.recorder = observe.NewRecorder(o.store, observe.RecorderOptions{
		Metrics: o.metrics, Logger: g.opt.Logger, Now: g.opt.Now, Keep: g.keepObservations,
	})
	for i := range g.cfg.Sources {
		s := &g.cfg.Sources[i]
		if s.Mode != config.Observe {
			continue
		}
		if err := g.newObserved(s); err != nil {
			return fmt.Errorf("source %q: %w", s.Name, err)
		}
	}
	return nil
}

// OpenObservations opens what is on record of sources in mode observe, for reading.
func OpenObservations(cfg *config.Config) (*observe.Store, error) { return openObservations(cfg, true) }

func openObservations(cfg *config.Config, readOnly bool) (*observe.Store, error) {
	if cfg.Store.Driver == config.Postgres {
		return observe.OpenPostgres(cfg.Store.Single(), cfg.Schema)
	}
	return observe.OpenSQLite(cfg.Store.DSN, readOnly)
}

// keepObservations says how long those of a source are kept: as long as attempts, which say the same of deliveries.
func (g *Gateway) keepObservations(source string) time.Duration {
	for i := range g.cfg.Sources {
		if s := &g.cfg.Sources[i]; s.Name == source {
			return g.cfg.RetentionOf(s).Attempts
		}
	}
	return g.cfg.RetentionOf(&config.Source{}).Attempts
}

func (g *Gateway) newObserved(s *config.Source) error {
	to, err := url.Parse(s.To)
	if err != nil {
		return err
	}
	p, err := s.NewProvider()
	if err != nil {
		return err
	}
	timeless, err := s.NewTimelessProvider()
	if err != nil {
		return err
	}
	source := observe.Source{
		Name: s.Name, To: to, Transport: g.observedTransport(), Provider: p,
		Deadline: s.GivesUp(), MaxBody: cmp.Or(s.MaxBody, p.MaxBody(), ingest.DefaultMaxBody),
	}
	if timeless != nil {
		source.Timeless = hookonce.Provider(timeless)
	}
	o := &g.observing
	f := observe.New(source, observe.Options{
		TrustedProxies: g.cfg.TrustedProxies, URL: ingest.SeenURL,
		Recorder: o.recorder, Metrics: o.metrics, Logger: g.opt.Logger, Now: g.opt.Now,
	})
	o.forwarders = append(o.forwarders, f)
	o.endpoints = append(o.endpoints, ingest.Service{Name: s.Name, Through: true, Handler: f})
	return nil
}

// observedTransport returns a transport whose kept connections an application is unlikely to close under a request:
// such a request fails, and its sender would have made a new connection. Servers wait for 2 s (gunicorn,
// https://docs.gunicorn.org/en/stable/settings.html#keepalive), for 5 s (Node, https://nodejs.org/api/http.html#serverkeepalivetimeout)
// or for longer.
func (g *Gateway) observedTransport() *http.Transport {
	t := deliver.NewTransport(addressPolicy(g.cfg.Delivery))
	t.IdleConnTimeout = time.Second
	t.ExpectContinueTimeout = time.Second
	t.MaxResponseHeaderBytes = 0 // the largest that net/http takes
	g.observing.transports = append(g.observing.transports, t)
	return t
}

// closeObserving stops what openObserving started, after the last request.
func (g *Gateway) closeObserving() error {
	o := &g.observing
	for _, f := range o.forwarders {
		f.Close()
	}
	for _, t := range o.transports {
		t.CloseIdleConnections()
	}
	if o.recorder != nil {
		o.recorder.Close()
	}
	if o.store == nil {
		return nil
	}
	return o.store.Close()
}
