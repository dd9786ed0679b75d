// Package gateway builds the server from its configuration, and starts and stops it in order. It is
// the only package that names concrete stores.
//
// The guarantee of a running gateway is at least once with a stable key: what it acknowledged is
// durable, and is delivered under the same key until the destination has answered 2xx, whatever
// happens to this process in between.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/tail"
	"github.com/hookonce/hookonce/internal/tracing"
)

// wiring is what runs: a plan, and what was opened for it. It is not changed once it is used.
type wiring struct {
	plan
	opened   services
	watching observers
}

// wire makes what runs of a configuration. What is the same as before keeps what it has learned.
func wire(cfg *config.Config, before *wiring) (*wiring, error) {
	var running *plan
	if before != nil {
		running = &before.plan
	}
	p, err := newPlan(cfg, running)
	if err != nil {
		return nil, err
	}
	return &wiring{plan: *p}, nil
}

// endpoints are those of all that is no provider's.
func (w *wiring) endpoints() []ingest.Service {
	return slices.Concat(w.opened.endpoints, w.watching.endpoints)
}

// Gateway is a running gateway. Its methods are safe for concurrent use.
type Gateway struct {
	opt     Options
	wired   atomic.Pointer[wiring] // what runs
	store   *journalStore
	journal *engine.Engine
	deliver *deliver.Deliverer

	kept        keeping // for services
	library     library // in the database of the journal
	observing   observing
	fleet       announcer
	tally       *tallying
	tracer      *tracing.Tracer
	overview    *overview.Overview
	alerting    *alerting.Alerting  // nil: it has not begun
	unstored    journal.AlertMemory // of alerting, and of the one before it while the store was waited for
	tail        *tail.Feed
	reconciling reconciling
	cells       celled

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
	o = o.withDefaults()
	g := &Gateway{opt: o, kept: keeping{opt: o}, observing: observing{opt: o}, failed: make(chan error, 3), hurry: make(chan struct{}, 1)}
	g.connections = newConnectionMetrics(g.opt.Registry)
	g.tally = newTallying(g.opt)
	g.register(cfg.Store)
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
	wired.cell.over(g.opt.Dial)
	g.wired.Store(wired)
	if g.tracer, err = newTracer(ctx, &wired.plan, g.opt); err != nil {
		return err
	}
	providers, admin := connectionLimits(&wired.plan, descriptors())
	checkDescriptors(g.opt.Logger, &wired.plan, providers)
	limits := defaultLimits(providers, spareIngest)
	limits.connections.Group = g.waitsFor
	if g.ingest, err = g.opt.listen("listen", wired.listen, nil, limits, g.connections); err != nil {
		return err
	}
	if g.admin, err = g.opt.listen("admin", wired.admin, wired.adminTLS, defaultLimits(admin, spareAdmin), g.connections); err != nil {
		return err
	}
	if err = g.listenCells(&wired.plan); err != nil {
		return err
	}
	g.guard = api.NewGuard(wired.tokens, api.GuardOptions{Logger: g.opt.strange, Registerer: g.opt.Registry, Now: g.opt.Now})
	if err := g.observing.open(wired.store, g.observationsKept); err != nil {
		return err
	}
	wired.watching = g.observing.sources(&wired.plan, observers{})
	if wired.watching.any() {
		return g.openOrLater(ctx, wired)
	}
	if err := g.enter(ctx, wired); err != nil {
		return err
	}
	return g.open(ctx, wired)
}

// enter opens the store and asks it all that a start asks, before anything begins that cannot begin
// twice. After an error nothing of it is left, and it may be called again.
func (g *Gateway) enter(ctx context.Context, wired *wiring) error {
	s, ids, err := openStore(ctx, wired.store, g.opt)
	if err != nil {
		return err
	}
	own, err := g.openCells(ctx, &wired.plan, s)
	if err != nil {
		return errors.Join(explain(wired.store.Store, err), s.Close())
	}
	j, err := engine.New(s, g.journalOptions(s, ids, wired))
	if err != nil {
		return errors.Join(explain(wired.store.Store, fmt.Errorf("the journal could not be started: %w", err)), s.Close())
	}
	g.store, g.journal, g.cells.Cells = s, j, own
	return nil
}

// open fills in what needs the store, and begins to serve, or to serve all. It asks the store
// nothing that it has to know.
func (g *Gateway) open(ctx context.Context, wired *wiring) (err error) {
	if g.store.standing != nil && g.observing.store != nil {
		g.observing.store.Guard(g.store.standing)
	}
	if g.cells.Cells != nil {
		if err = g.cells.Register(g.opt.Registry); err != nil {
			return err
		}
	}
	if g.deliver, err = deliver.New(g.deliverOptions(wired)); err != nil {
		return err
	}
	if wired.opened, err = g.kept.open(ctx, &wired.plan, g.store); err != nil {
		return err
	}
	g.kept.use(wired.opened)
	g.deliver.Start()
	g.tally.begin(g.store)
	g.fleet.join(g.opt, g.store, g.targets)
	g.handler = g.ingestHandler(wired)
	g.ingest.storing, g.ingest.asking = g.handler.Storing, g.handler.Asking
	g.tellMemory(&wired.plan)
	g.readiness = g.newReadiness()
	g.readiness.full, g.readiness.ping = g.journal.Full, g.writable
	if g.library, err = openLibrary(wired.store, g.store, g.opt); err != nil {
		return err
	}
	g.overview = overview.New(g.overviewOptions())
	g.alerting = alerting.New(g.alertingOptions())
	g.tail = tail.New(g.store, g.opt.Now)
	g.prepareReconcile(ctx)
	admin := g.adminMux(g.readiness, api.New(g.apiOptions()))
	g.opened.Store(true)
	g.serve(g.admin, admin)
	g.serve(g.ingest, g.handler)
	g.serveCells()
	g.alerting.Start()
	g.reconcile()
	return nil
}

// openOrLater starts what needs the store if that is there; otherwise the rest.
func (g *Gateway) openOrLater(ctx context.Context, wired *wiring) error {
	short, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err := g.enter(short, wired)
	switch {
	case err == nil:
		return g.open(ctx, wired)
	case ctx.Err() != nil || !passes(err):
		return err
	}
	g.openLater(wired, err)
	return nil
}

// openLater serves the sources that are observed, and goes on with the start when the store can be opened.
func (g *Gateway) openLater(wired *wiring, cause error) {
	g.opt.Logger.Error("gateway: the store is away; sources with mode observe are served, and the senders of all others are asked to come again", "error", cause)
	g.opening.cause.Store(&cause)
	early := overview.New(g.earlyOverview())
	admin := g.adminMux(g.newReadiness(), g.earlyQuestions(early))
	g.serve(g.admin, admin)
	g.serve(g.ingest, g.earlyIngest(wired))
	ctx, cancel := context.WithCancel(context.Background())
	g.opening.cancel, g.opening.done, g.opening.alerting = cancel, make(chan struct{}), alerting.New(g.earlyAlerting(early))
	g.opening.alerting.Start()
	go func() {
		defer close(g.opening.done)
		defer early.Close()
		there := g.awaitStore(ctx, wired)
		g.opening.alerting.Close() // one after the other has what is told
		if !there {
			return
		}
		if err := g.open(ctx, wired); err != nil {
			g.failed <- err
			return
		}
		g.opt.Logger.Info("gateway: the store is there, and all sources are served")
	}()
}

// awaitStore enters the store as soon as that can be done, and again if it fails half way: a
// database that has just come back may be gone at the next question. It reports false when ctx
// ends.
func (g *Gateway) awaitStore(ctx context.Context, wired *wiring) bool {
	again := time.NewTicker(openAgain)
	defer again.Stop()
	said := ""
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
		err := g.enter(ctx, wired)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		g.opening.cause.Store(&err)
		if text := err.Error(); text != said {
			said = text
			g.opt.Logger.Error("gateway: the store cannot be opened; it is tried again every second", "error", err)
		}
	}
}

func (g *Gateway) journalOptions(s *journalStore, ids *journal.IDs, w *wiring) engine.Options {
	o := w.journal
	o.Notifier, o.Partitions, o.IDs = s.notifier, s.partitions, ids
	o.Now, o.Logger, o.Registerer, o.Tally = g.opt.Now, g.opt.Logger, g.opt.Registry, g.tally.Registry
	return o
}

func (g *Gateway) deliverOptions(w *wiring) deliver.Options {
	o := w.deliver
	o.Journal = g.journal
	o.Now, o.Logger, o.Registerer, o.Tally, o.Watcher = g.opt.Now, g.opt.Logger, g.opt.Registry, g.tally.Registry, g.opt.Watcher
	o.Tracer, o.Dial = g.tracer, g.opt.Dial
	return o
}

func (g *Gateway) ingestHandler(w *wiring) *ingest.Handler {
	o := w.ingest
	o.Services = w.endpoints()
	o.Journal, o.Answers, o.Bypasser, o.BypassAttempt = g.journal, g.journal, g.journal, g.deliver.BypassAttempt
	o.Now, o.Logger, o.Registerer, o.Tally, o.Watcher = g.opt.Now, g.opt.strange, g.opt.Registry, g.tally.Registry, g.opt.Watcher
	o.Tracer, o.Cells = g.tracer, g.cells.Cells
	return ingest.New(o)
}

func (g *Gateway) apiOptions() api.Options {
	return api.Options{
		Journal:     g.journal,
		Records:     g.store.records(),
		Changed:     g.store.changed,
		Refusals:    g.handler.Refusals(),
		Sources:     func() []api.Source { return apiSources(g.config()) },
		Overview:    g.overview.Snapshot,
		Rules:       func() alert.Settings { return g.wired.Load().alerts.Rules },
		Evaluated:   func() bool { return !g.wired.Load().alerts.Off },
		Alerts:      g.alerting.Desk(),
		Channels:    g.channels,
		TestChannel: g.testChannel,
		Tail:        g.tail,
		SecretOf:    g.secretOf,
		Payloads:    func() api.Form { return g.wired.Load().payloads },
		Self:        g.fleet.self,
		Targets:     g.targets,
		Reload: func(ctx context.Context, by string) ([]string, error) {
			changed, err := g.Reload(ctx, by)
			return changed, refusal(err)
		},
		Compare: g.compareNow,
		Field:   func(source, name string) (api.Reader, error) { return fieldReader(g.config(), source, name) },
		Version: g.opt.Version,
		Now:     g.opt.Now,
		Logger:  g.opt.strange,
	}
}

// observationsKept says how long those of a source are kept: as long as attempts, which say the same of deliveries.
func (g *Gateway) observationsKept(source string) time.Duration {
	keep := g.wired.Load().journal.Retention
	if own, ok := keep.Sources[source]; ok {
		return own.Attempts
	}
	return keep.Attempts
}

// newReadiness returns what answers while the store is away.
func (g *Gateway) newReadiness() *readiness {
	return &readiness{
		guard: g.guard, stopping: &g.stopping, now: g.opt.Now, log: g.opt.strange,
		observed: func() bool { return g.wired.Load().watching.any() },
		open:     func() bool { return g.wired.Load().open() },
	}
}

// targets returns the destinations as they are configured and as they stand.
func (g *Gateway) targets() []fleet.Target { return apiTargets(g.config(), g.deliver.Destinations()) }

// tellMemory tells [Options.Memory] the bound.
func (g *Gateway) tellMemory(p *plan) {
	if g.opt.Memory != nil {
		g.opt.Memory(memoryBound(p, g.handler.MaxReading()))
	}
}

// waitsFor returns the name of such a source if a request is for one.
func (g *Gateway) waitsFor(r *http.Request) string {
	rest, _ := strings.CutPrefix(r.URL.Path, ingest.PathPrefix)
	name, _, _ := strings.Cut(rest, "/")
	if !g.wired.Load().waiting[name] {
		return ""
	}
	return name
}

// config returns the configuration that runs.
func (g *Gateway) config() *config.Config { return g.wired.Load().cfg }

// Addr returns the address that providers post to, with the port that was actually bound.
func (g *Gateway) Addr() net.Addr { return g.ingest.Addr() }

// AdminAddr returns the address of the listener for people and machines.
func (g *Gateway) AdminAddr() net.Addr { return g.admin.Addr() }

// Reload reads the configuration anew, holds it against the one that runs, and uses it, on account of by. It
// returns what changed, in words without secrets. It is all or nothing: with an error, which may be
// [settings.Faults] or a [RestartError], nothing was changed, but for the map of a [cells.IntroducedError]. All that comes of it is in the log.
//
// Requests and attempts under way end as they began, and none is refused because of it. Calls wait for each
// other. ctx bounds the preparation; the change itself takes no time.
func (g *Gateway) Reload(ctx context.Context, by string) (changed []string, err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	changed, err = g.reload(ctx)
	var faults settings.Faults
	switch {
	case errors.As(err, &faults):
		for _, f := range faults {
			g.opt.Logger.Error("gateway: not reloaded, because of a fault in the configuration; nothing was changed", "by", by, "fault", f)
		}
	case err != nil:
		g.opt.Logger.Error("gateway: not reloaded; "+leaves(err), "by", by, "error", err)
	case len(changed) == 0:
		g.opt.Logger.Info("gateway: reloaded; nothing has changed", "by", by)
	default:
		g.opt.Logger.Info("gateway: reloaded", "changes", changed, "by", by)
	}
	return changed, err
}

func (g *Gateway) reload(ctx context.Context) (changed []string, err error) {
	switch {
	case g.stopping.Load():
		return nil, ErrStopping
	case g.opt.Load == nil:
		return nil, ErrNothingToReload
	case !g.opened.Load():
		return nil, ErrNotOpen
	}
	next, err := g.opt.Load()
	if err != nil {
		return nil, err
	}
	changes := g.config().Changes(next)
	if changed, err = decide(changes); len(changed) == 0 {
		return nil, err
	}
	wired, err := wire(next, g.wired.Load())
	if err != nil {
		return nil, err
	}
	wired.cell.over(g.opt.Dial)
	if (wired.adminTLS == nil) != (g.wired.Load().adminTLS == nil) {
		return nil, &RestartError{[]string{"admin_tls"}} // connections that are there go on as they began
	}
	if wired.opened, err = g.kept.open(ctx, &wired.plan, g.store); err != nil {
		return nil, err
	}
	wired.watching = g.observing.sources(&wired.plan, g.wired.Load().watching)
	before := g.cells.number()
	if err := g.cells.configure(ctx, &wired.plan); err != nil {
		g.kept.discard(wired.opened)
		return nil, err
	}
	if err := g.swap(wired); err != nil {
		g.kept.discard(wired.opened)
		if n := g.cells.number(); n > before {
			err = &cells.IntroducedError{Number: n, Err: err}
		}
		return nil, err
	}
	g.reconciling.schedule.Observe(ctx)
	for _, text := range next.Warnings {
		g.opt.Logger.Warn(text)
	}
	return changed, nil
}

// swap makes a wiring the one that runs, unless the gateway stops. Destinations come before the events that are
// for them; for those that go, nothing is taken any more from when their send queues are closed.
func (g *Gateway) swap(w *wiring) error {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	if g.stopping.Load() {
		return ErrStopping
	}
	before := g.wired.Load()
	if err := g.deliver.Reload(w.deliver.Destinations, w.deliver.Relayed); err != nil {
		return err
	}
	if err := g.journal.Reload(w.journal.Destinations, w.journal.Retention); err != nil {
		return errors.Join(err, g.deliver.Reload(before.deliver.Destinations, before.deliver.Relayed))
	}
	g.guard.Reload(w.tokens)
	g.tail.Disconnect() // whoever may still look on comes back
	g.admin.certificates.Store(w.adminTLS)
	connections, _ := connectionLimits(&w.plan, descriptors())
	checkDescriptors(g.opt.Logger, &w.plan, connections)
	g.ingest.SetLimits(connections)
	g.wired.Store(w)
	g.cells.reload(&before.plan, &w.plan)
	g.handler.Reload(w.ingest.Sources, w.endpoints(), w.ingest.TrustedProxies)
	g.tellMemory(&w.plan)
	g.kept.use(w.opened)
	g.observing.retire(before.watching, w.watching)
	g.fleet.hurry()
	before.telling.closeIdle()
	before.senders.CloseIdleConnections()
	if g.opt.Level != nil {
		g.opt.Level.Set(w.logLevel)
	}
	return nil
}

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

// SameSignal is within which a second signal to the process is the first one again, and hurries nothing: some
// supervisors signal the process and then its group.
const SameSignal = 250 * time.Millisecond

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
	if g.tail != nil {
		g.tail.Close()
	}
	g.reconciling.close()
	g.cells.stop()
	err := errors.Join(
		g.quiesce(ctx),
		g.closeJournal(ctx),
		g.admin.close(ctx),
		g.closeStores(ctx),
	)
	loglimit.Flush(g.opt.strange)
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
	if g.journal != nil {
		g.journal.Retire() // else what the deliverer hands back is taken again, for nobody, until the last request has ended
	}
	var both errgroup.Group
	both.Go(func() error { return g.ingest.close(ctx) })
	both.Go(func() error { return g.cells.end(ctx) })
	both.Go(func() error { return g.stopDeliveries(ctx) })
	defer g.cells.hangUp()
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
	if g.alerting != nil {
		g.alerting.Close()
	}
	if g.overview != nil {
		g.overview.Close()
	}
	g.tally.end(ctx)
	g.tracer.Close(ctx)
	g.fleet.leave(ctx)
	g.kept.close()
	running := observers{}
	if w := g.wired.Load(); w != nil {
		running = w.watching
	}
	err := g.observing.close(running)
	if g.store == nil {
		return err
	}
	return errors.Join(err, g.library.close(), g.store.Close())
}

// serve answers requests on l until it is closed. A second call changes who answers.
func (g *Gateway) serve(l *listener, h http.Handler) {
	l.serve(h, func(err error) { g.failed <- err })
}
