package gateway

import (
	"net/http"
	"reflect"
	"slices"
	"time"

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
func (g *Gateway) openObserving(in storePlan) (err error) {
	o := &g.observing
	if o.store, err = openObservations(in, false); err != nil {
		return explain(in.Store, err)
	}
	o.metrics = observe.NewMetrics(g.opt.Registry)
	o.recorder = observe.NewRecorder(o.store, observe.RecorderOptions{
		Metrics: o.metrics, Logger: g.opt.Logger, Now: g.opt.Now, Keep: g.keepObservations,
	})
	return nil
}

// observe builds the sources in mode observe. What is the same before, in a wiring that runs, stays.
func (g *Gateway) observe(p *plan, before *wiring) observers {
	o := observers{forwarders: map[string]*forwarder{}}
	for _, s := range p.observed {
		f := before.forwarder(p, s.Name)
		if f == nil {
			f = g.newForwarder(p, s)
		}
		o.forwarders[s.Name] = f
		o.endpoints = append(o.endpoints, ingest.Service{Name: s.Name, Through: true, Handler: f})
	}
	return o
}

// forwarder returns that of a source which is the same, as is all else that it goes by; nil if there is none.
func (w *wiring) forwarder(p *plan, source string) *forwarder {
	if w == nil || !slices.Equal(w.ingest.TrustedProxies, p.ingest.TrustedProxies) || !reflect.DeepEqual(w.policy, p.policy) || !w.cfg.SameSource(p.cfg, source) {
		return nil
	}
	return w.watching.forwarders[source]
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
	return openObservations(storePlan{Store: cfg.Store, schema: cfg.Schema}, true)
}

func openObservations(in storePlan, readOnly bool) (*observe.Store, error) {
	if in.Driver == config.Postgres {
		return observe.OpenPostgres(in.Single(), in.schema)
	}
	return observe.OpenSQLite(in.DSN, readOnly)
}

// keepObservations says how long those of a source are kept: as long as attempts, which say the same of deliveries.
func (g *Gateway) keepObservations(source string) time.Duration {
	keep := g.wired.Load().journal.Retention
	if own, ok := keep.Sources[source]; ok {
		return own.Attempts
	}
	return keep.Attempts
}

func (g *Gateway) newForwarder(p *plan, s observe.Source) *forwarder {
	f := &forwarder{transport: observedTransport(p.policy)}
	s.Transport = f.transport
	o := &g.observing
	f.Forwarder = observe.New(s, observe.Options{
		TrustedProxies: p.ingest.TrustedProxies, URL: ingest.SeenURL,
		Recorder: o.recorder, Metrics: o.metrics, Logger: g.opt.strange, Now: g.opt.Now,
	})
	return f
}

// observedTransport returns a transport that keeps connections only while requests come thick and fast. An application
// that closes one under a request (because it is restarted, or has waited for long enough) makes that request fail,
// and its sender would have made a new connection; but many new ones a second use up the ports of the machine.
func observedTransport(policy deliver.AddressPolicy) *http.Transport {
	t := deliver.NewTransport(policy)
	t.IdleConnTimeout = 100 * time.Millisecond
	t.ExpectContinueTimeout = time.Second
	t.MaxResponseHeaderBytes = 0 // the largest that net/http takes
	return t
}

// closeObserving stops what openObserving started, after the last request.
func (g *Gateway) closeObserving() error {
	o := &g.observing
	if w := g.wired.Load(); w != nil {
		o.retire(w.watching, observers{})
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
