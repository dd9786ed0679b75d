// Package gateway builds the server from its configuration, and starts and stops it in order. It is
// the only package that names concrete stores.
//
// The guarantee of a running gateway is at least once with a stable key: what it acknowledged is
// durable, and is delivered under the same key until the destination has answered 2xx, whatever
// happens to this process in between.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/lines"
)

// Options are what a gateway gets besides its configuration. The zero value of every field means its
// default.
type Options struct {
	// Logger receives what operators need to know, never bodies or secrets. Default: nothing is
	// logged.
	Logger *slog.Logger
	// strange is Logger, at a bounded rate, for lines that strangers can cause.
	strange *slog.Logger
	// Version is reported in the log and the metrics. Default "(devel)".
	Version string
	// Registry receives the metrics that /metrics shows. Default: a new one, with the metrics of
	// the Go runtime and the process.
	Registry *prometheus.Registry
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Load reads the configuration anew, for [Gateway.Reload]. Nil: there is nothing to read again.
	Load func() (*config.Config, error)
	// Level is what Logger goes by; a reload sets it to the configured one. Nil: it stays.
	Level *slog.LevelVar
	// Watcher is told what becomes of every request and every attempt, as it happens. Default: nobody is.
	Watcher Watcher
	// Memory is told at the start, and when the configuration was read again, how many bytes the process takes at most if
	// garbage is collected in time. It is meant for [debug.SetMemoryLimit], which changes the whole process. Nil: nobody is told.
	Memory func(bytes int64)
}

// Watcher is told what becomes of every request and every attempt, for people who look on. Its methods are
// called by many goroutines at a time and must not block.
type Watcher interface {
	ingest.Watcher
	deliver.Watcher
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.strange = lines.Bound(o.Logger)
	o.Version = cmp.Or(o.Version, "(devel)")
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
		o.Registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Gateway is a running gateway. Its methods are safe for concurrent use.
type Gateway struct {
	opt     Options
	wired   atomic.Pointer[wiring] // what runs
	store   journal.Store
	records journal.Records  // of the store
	bell    journal.Notifier // of the store; nil: it is ours alone
	journal *engine.Engine
	deliver *deliver.Deliverer

	kept       keeping // for services
	observing  observing
	fleet      fleet
	partitions journal.Partitioned // the store; nil: it has none

	ingest  *listener
	admin   *listener
	handler *ingest.Handler // of ingest
	guard   *api.Guard      // of admin

	connections *connectionMetrics
	readiness   *readiness

	reloading sync.Mutex // one reload at a time
	swapping  sync.Mutex // a reload that changes what runs, or the beginning of a stop

	opened  atomic.Bool // all that needs the store is there
	opening opening     // if it was not there at the start

	started  bool // said that it runs
	stopping atomic.Bool
	failed   chan error // receives why a listener ended by itself, or the start did not go on
	hurry    chan struct{}
	waits    atomic.Bool // for the end of the delay, which hurry ends
	stop     sync.Once
	result   error // of Close
}

// Run starts a gateway and stops it when ctx ends, or when one of its listeners fails. It returns nil
// after a clean stop.
func Run(ctx context.Context, cfg *config.Config, o Options) error {
	g, err := Start(ctx, cfg, o)
	if err != nil {
		return err
	}
	return g.Wait(ctx)
}

// Start starts a gateway. It returns when the addresses are bound, the store is open and current, and
// requests are answered. ctx bounds the start only. Close must be called. Where a source is observed and the store is away,
// requests to such sources are answered before it is open, and those to others with 503.
//
// An error is one line for people: which address is taken, why the store cannot be used, which
// destination makes no sense. Nothing is left running then.
//
// The addresses are bound first, so that a gateway that cannot listen takes no deliveries from the
// ones that run. Senders who connect early wait until it is ready.
func Start(ctx context.Context, cfg *config.Config, o Options) (*Gateway, error) {
	g := &Gateway{opt: o.withDefaults(), failed: make(chan error, 3), hurry: make(chan struct{}, 1)}
	g.connections = newConnectionMetrics(g.opt.Registry)
	began := g.opt.Now()
	if err := g.start(ctx, cfg); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
		defer cancel()
		return nil, errors.Join(err, g.Close(ctx))
	}
	g.started = true
	g.opt.Logger.Info("gateway: running", "version", g.opt.Version, "listen", g.Addr().String(), "admin", g.AdminAddr().String(),
		"store", cfg.Store.String(), "sources", len(cfg.Sources), "took", g.opt.Now().Sub(began).Round(time.Millisecond))
	return g, nil
}

// start fills in the gateway from the outside to the inside and back. When it fails, Close undoes
// what is there.
func (g *Gateway) start(ctx context.Context, cfg *config.Config) (err error) {
	wired, err := wire(cfg, nil)
	if err != nil {
		return err
	}
	g.wired.Store(wired)
	providers, admin := connectionLimits(&wired.plan, descriptors())
	g.checkDescriptors(&wired.plan, providers)
	limits := defaultLimits(providers, spareIngest)
	limits.connections.Group = g.waitsFor
	if g.ingest, err = g.listen("listen", wired.listen, limits); err != nil {
		return err
	}
	if g.admin, err = g.listen("admin", wired.admin, defaultLimits(admin, spareAdmin)); err != nil {
		return err
	}
	g.guard = api.NewGuard(wired.tokens, api.GuardOptions{Logger: g.opt.strange, Registerer: g.opt.Registry, Now: g.opt.Now})
	if err := g.openObserving(wired.store); err != nil {
		return err
	}
	wired.watching = g.observe(&wired.plan, nil)
	if wired.watching.any() {
		return g.openOrLater(ctx, wired)
	}
	ids, err := g.openStore(ctx)
	if err != nil {
		return err
	}
	return g.open(ctx, wired, ids)
}

// open fills in what needs the store, and begins to serve, or to serve all.
func (g *Gateway) open(ctx context.Context, wired *wiring, ids *journal.IDs) (err error) {
	if g.journal, err = engine.New(g.store, g.journalOptions(ids, wired)); err != nil {
		return explain(wired.store.Store, fmt.Errorf("the journal could not be started: %w", err))
	}
	if g.deliver, err = deliver.New(g.deliverOptions(wired)); err != nil {
		return err
	}
	if wired.opened, err = g.openServices(ctx, &wired.plan); err != nil {
		return err
	}
	g.kept.use(wired.opened)
	g.deliver.Start()
	g.join()
	g.handler = g.ingestHandler(wired)
	g.ingest.storing = g.handler.Storing
	g.memory()
	g.readiness = &readiness{ping: g.journal.Ping, now: g.opt.Now, log: g.opt.strange}
	admin := g.adminHandler()
	g.opened.Store(true)
	g.serve(g.admin, admin)
	g.serve(g.ingest, g.handler)
	return nil
}

// config returns the configuration that runs.
func (g *Gateway) config() *config.Config { return g.wired.Load().cfg }

// Addr returns the address that providers post to, with the port that was actually bound.
func (g *Gateway) Addr() net.Addr { return g.ingest.Addr() }

// AdminAddr returns the address of the listener for people and machines.
func (g *Gateway) AdminAddr() net.Addr { return g.admin.Addr() }

// Wait runs until ctx ends or a listener fails, and then closes the gateway within the configured
// shutdown timeout. When ctx ends requests are served for the configured delay more, although the gateway
// says from then on that it is not ready.
func (g *Gateway) Wait(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
		g.opt.Logger.Info("gateway: stopping", "cause", context.Cause(ctx), "delay", g.wired.Load().stopDelay)
	case err = <-g.failed:
		g.opt.Logger.Error("gateway: stopping", "cause", err)
	}
	w := g.wired.Load()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.stopTimeout)
	defer cancel()
	if err == nil && w.stopDelay > 0 {
		err = g.linger(w.stopDelay)
	}
	return errors.Join(err, g.Close(ctx))
}

// linger serves requests for a while more, until Hurry is called or a listener fails, which it returns.
func (g *Gateway) linger(delay time.Duration) error {
	g.retire()
	g.waits.Store(true)
	defer g.waits.Store(false)
	select {
	case <-time.After(delay):
	case <-g.hurry:
		g.opt.Logger.Info("gateway: the rest of the delay is left out")
	case err := <-g.failed:
		g.opt.Logger.Error("gateway: stopping", "cause", err)
		return err
	}
	return nil
}

// Hurry ends the delay at the beginning of a stop. It reports false if there is none at the moment, and does
// nothing then.
func (g *Gateway) Hurry() bool {
	if !g.waits.CompareAndSwap(true, false) {
		return false
	}
	g.hurry <- struct{}{}
	return true
}

// retire says that the gateway stops: it is not ready any more, and nothing is reloaded.
func (g *Gateway) retire() {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	g.stopping.Store(true)
}

// Close stops the gateway before ctx ends: /readyz answers 503 from now on, no request is taken, the
// requests and deliveries under way finish or, shortly before the end, are cut off and handed back,
// what they came to is recorded, and the store is closed. Nothing that was acknowledged is lost, even
// when Close returns an error because time was too short: it begins again at the next start, or in
// another process. A ctx without a deadline waits as long as it takes. Later calls return the result
// of the first.
func (g *Gateway) Close(ctx context.Context) error {
	g.stop.Do(func() { g.result = g.close(ctx) })
	return g.result
}

func (g *Gateway) close(ctx context.Context) error {
	g.retire()
	g.opening.close()
	err := errors.Join(
		g.quiesce(ctx),
		g.closeJournal(ctx),
		g.admin.close(ctx),
		g.closeStores(ctx),
	)
	lines.Flush(g.opt.strange)
	if err != nil {
		return fmt.Errorf("the gateway did not stop cleanly (what was acknowledged is kept and will be delivered): %w", err)
	}
	if g.started {
		g.opt.Logger.Info("gateway: stopped")
	}
	return nil
}

// reserve is the part of the time for stopping that is kept for recording what became of the work.
const reserve = 0.2

// quiesce ends requests and deliveries side by side, because each may use up the time it is given.
func (g *Gateway) quiesce(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left-time.Duration(float64(left)*reserve))
		defer cancel()
	}
	var both errgroup.Group
	both.Go(func() error { return g.ingest.close(ctx) })
	both.Go(func() error { return g.stopDeliveries(ctx) })
	return both.Wait()
}

// stopDeliveries ends the deliveries. That some were cut off and handed back is worth a line in the
// log, and no failure.
func (g *Gateway) stopDeliveries(ctx context.Context) error {
	if g.deliver == nil {
		return nil
	}
	if err := g.deliver.Stop(ctx); err != nil {
		g.opt.Logger.Warn("gateway: deliveries were cut off and handed back", "cause", err)
	}
	return nil
}

func (g *Gateway) closeJournal(ctx context.Context) error {
	if g.journal == nil {
		return nil
	}
	return g.journal.Close(ctx)
}

func (g *Gateway) closeStores(ctx context.Context) error {
	g.leave(ctx)
	g.kept.close()
	err := g.closeObserving()
	if g.store == nil {
		return err
	}
	return errors.Join(err, g.store.Close())
}

// serve answers requests on l until it is closed. A second call changes who answers.
func (g *Gateway) serve(l *listener, h http.Handler) {
	l.serve(h, func(err error) { g.failed <- err })
}
