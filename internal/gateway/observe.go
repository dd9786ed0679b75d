package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/observe"
	"github.com/hookonce/hookonce/internal/onefile"
)

// observers are the sources in mode observe.
type observers struct {
	endpoints  []ingest.Service
	forwarders map[string]*forwarder // by source
}

// any reports whether there is one.
func (o observers) any() bool { return len(o.endpoints) > 0 }

// forwarder is what one source in mode observe uses.
type forwarder struct {
	*observe.Forwarder
	transport *http.Transport
}

// observing is what records them, and outlives a reload.
type observing struct {
	metrics  *observe.Metrics
	recorder *observe.Recorder
	store    *observe.Store
	retired  []*forwarder // that requests under way may still use
}

// openObserving opens the record of sources in mode observe. It asks nothing of the store. Where no source is observed
// any more, what is on record is forgotten in time.
func (g *Gateway) openObserving(cfg *config.Config) (err error) {
	o := &g.observing
	if o.store, err = openObservations(cfg, false); err != nil {
		return explain(cfg.Store, err)
	}
	o.metrics = observe.NewMetrics(g.opt.Registry)
	o.recorder = observe.NewRecorder(o.store, observe.RecorderOptions{
		Metrics: o.metrics, Logger: g.opt.Logger, Now: g.opt.Now, Keep: g.keepObservations,
	})
	return nil
}

// observe builds the sources in mode observe. What is the same before, in a wiring that runs, stays.
func (g *Gateway) observe(cfg *config.Config, before *wiring) (observers, error) {
	o := observers{forwarders: map[string]*forwarder{}}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Mode != config.Observe {
			continue
		}
		f := before.forwarder(cfg, s)
		if f == nil {
			var err error
			if f, err = g.newForwarder(cfg, s); err != nil {
				return observers{}, fmt.Errorf("source %q: %w", s.Name, err)
			}
		}
		o.forwarders[s.Name] = f
		o.endpoints = append(o.endpoints, ingest.Service{Name: s.Name, Through: true, Handler: f})
	}
	return o, nil
}

// forwarder returns that of a source which is the same, as is all else that it goes by; nil if there is none.
func (w *wiring) forwarder(cfg *config.Config, s *config.Source) *forwarder {
	if w == nil || !slices.Equal(w.cfg.TrustedProxies, cfg.TrustedProxies) || !reflect.DeepEqual(addressPolicy(w.cfg.Delivery), addressPolicy(cfg.Delivery)) ||
		!slices.ContainsFunc(w.cfg.Sources, func(old config.Source) bool { return old.Same(s) }) {
		return nil
	}
	return w.observed.forwarders[s.Name]
}

// retire keeps the forwarders that are not used any more until the last request has ended. Those that it got earlier
// get no new ones.
func (o *observing) retire(before, now observers) {
	o.retired = slices.DeleteFunc(o.retired, func(f *forwarder) bool { return f.Idle() })
	for name, f := range before.forwarders {
		if now.forwarders[name] != f {
			o.retired = append(o.retired, f)
			f.transport.CloseIdleConnections()
		}
	}
}

// OpenObservations opens what is on record of sources in mode observe, for reading.
func OpenObservations(cfg *config.Config) (*observe.Store, error) {
	if cfg.Store.Driver == config.SQLite {
		if err := onefile.Check(cfg.Store.DSN); err != nil {
			return nil, err
		}
	}
	return openObservations(cfg, true)
}

func openObservations(cfg *config.Config, readOnly bool) (*observe.Store, error) {
	if cfg.Store.Driver == config.Postgres {
		return observe.OpenPostgres(cfg.Store.Single(), cfg.Schema)
	}
	return observe.OpenSQLite(cfg.Store.DSN, readOnly)
}

// keepObservations says how long those of a source are kept: as long as attempts, which say the same of deliveries.
func (g *Gateway) keepObservations(source string) time.Duration {
	cfg := g.config()
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Name == source {
			return cfg.RetentionOf(s).Attempts
		}
	}
	return cfg.RetentionOf(&config.Source{}).Attempts
}

func (g *Gateway) newForwarder(cfg *config.Config, s *config.Source) (*forwarder, error) {
	to, err := url.Parse(s.To)
	if err != nil {
		return nil, err
	}
	p, err := s.NewProvider()
	if err != nil {
		return nil, err
	}
	timeless, err := s.NewTimelessProvider()
	if err != nil {
		return nil, err
	}
	f := &forwarder{transport: observedTransport(cfg)}
	source := observe.Source{
		Name: s.Name, To: to, Transport: f.transport, Provider: p,
		Deadline: s.GivesUp(), MaxBody: cmp.Or(s.MaxBody, p.Profile().MaxBody, ingest.DefaultMaxBody),
	}
	if timeless != nil {
		source.Timeless = hookonce.Provider(timeless)
	}
	o := &g.observing
	f.Forwarder = observe.New(source, observe.Options{
		TrustedProxies: cfg.TrustedProxies, URL: ingest.SeenURL,
		Recorder: o.recorder, Metrics: o.metrics, Logger: g.opt.strange, Now: g.opt.Now,
	})
	return f, nil
}

// observedTransport returns a transport that keeps connections only while requests come thick and fast. An application
// that closes one under a request (because it is restarted, or has waited for long enough) makes that request fail,
// and its sender would have made a new connection; but many new ones a second use up the ports of the machine.
func observedTransport(cfg *config.Config) *http.Transport {
	t := deliver.NewTransport(addressPolicy(cfg.Delivery))
	t.IdleConnTimeout = 100 * time.Millisecond
	t.ExpectContinueTimeout = time.Second
	t.MaxResponseHeaderBytes = 0 // the largest that net/http takes
	return t
}

// closeObserving stops what openObserving started, after the last request.
func (g *Gateway) closeObserving() error {
	o := &g.observing
	if w := g.wired.Load(); w != nil {
		o.retire(w.observed, observers{})
	}
	for _, f := range o.retired {
		f.Close()
	}
	if o.recorder != nil {
		o.recorder.Close()
	}
	if o.store == nil {
		return nil
	}
	return o.store.Close()
}
