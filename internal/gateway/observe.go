package gateway

import (
	"crypto/tls"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/observe"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// observers are the sources in mode observe.
type observers struct {
	plan       *plan // that they are of; nil: there are none
	endpoints  []ingest.Service
	forwarders map[string]*forwarder // by source
}

// any reports whether there is one.
func (o observers) any() bool { return len(o.endpoints) > 0 }

// forwarder is what one source in mode observe uses.
type forwarder struct {
	*observe.Forwarder
	transport *outgoing.Transport
}

// observing is what records them, and outlives a reload.
type observing struct {
	opt      Options
	metrics  *observe.Metrics
	observer *observe.Observer
	store    *observe.Store
	retired  []*forwarder // that requests under way may still use
}

// open opens the record of sources in mode observe. It asks nothing of the store. Where no source is observed
// any more, what is on record is forgotten in time. Nothing is opened beside a store that was given: see [Options].
func (o *observing) open(in storePlan, keep func(source string) time.Duration) (err error) {
	if o.opt.Store != nil {
		return nil
	}
	if o.store, err = openObservations(in, false); err != nil {
		return explain(in.Store, err)
	}
	o.metrics = observe.NewMetrics(o.opt.Registry)
	o.observer = observe.NewObserver(o.store, observe.ObserverOptions{
		Metrics: o.metrics, Logger: o.opt.Logger, Now: o.opt.Now, Keep: keep,
	})
	return nil
}

// sources builds those in mode observe. What is the same before, in those that run, stays.
func (o *observing) sources(p *plan, before observers) observers {
	all := observers{plan: p, forwarders: map[string]*forwarder{}}
	for _, s := range p.observed {
		f := before.forwarder(p, s.Name)
		if f == nil {
			f = o.newForwarder(p, s)
		}
		all.forwarders[s.Name] = f
		all.endpoints = append(all.endpoints, ingest.Service{Name: s.Name, Through: true, Handler: f})
	}
	return all
}

// forwarder returns that of a source which is the same, as is all else that it goes by; nil if there is none.
func (o observers) forwarder(p *plan, source string) *forwarder {
	if o.plan == nil || !slices.Equal(o.plan.ingest.TrustedProxies, p.ingest.TrustedProxies) || !reflect.DeepEqual(o.plan.policy, p.policy) || !o.plan.cfg.SameSource(p.cfg, source) {
		return nil
	}
	return o.forwarders[source]
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
		if err := sqlitefile.Check(cfg.Store.DSN); err != nil {
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

func (o *observing) newForwarder(p *plan, s observe.Source) *forwarder {
	f := &forwarder{transport: observedTransport(p.policy, p.deliver.Destinations[s.Name].TLS)}
	s.Transport = f.transport
	f.Forwarder = observe.New(s, observe.Options{
		TrustedProxies: p.ingest.TrustedProxies, URL: ingest.SeenURL,
		Observer: o.observer, Metrics: o.metrics, Logger: o.opt.strange, Now: o.opt.Now,
	})
	return f
}

// observedTransport returns a transport that keeps connections only while requests come thick and fast. An application
// that closes one under a request (because it is restarted, or has waited for long enough) makes that request fail,
// and its sender would have made a new connection; but many new ones a second use up the ports of the machine.
//
// The application is recognised as it is when events are delivered to it.
func observedTransport(policy deliver.AddressPolicy, settings *tls.Config) *outgoing.Transport {
	return deliver.NewTransport(policy, func(t *http.Transport) {
		t.TLSClientConfig = settings.Clone()
		t.IdleConnTimeout = 100 * time.Millisecond
		t.ExpectContinueTimeout = time.Second
		t.MaxResponseHeaderBytes = 0 // the largest that net/http takes
	})
}

// close stops what open started, after the last request.
func (o *observing) close(running observers) error {
	o.retire(running, observers{})
	for _, f := range o.retired {
		f.Close()
	}
	if o.observer != nil {
		o.observer.Close()
	}
	if o.store == nil {
		return nil
	}
	return o.store.Close()
}
