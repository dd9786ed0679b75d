package deliver

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/internal/tracing"
)

type metrics struct {
	attempts       *prometheus.CounterVec
	firsts         *prometheus.CounterVec
	firstFailures  *prometheus.CounterVec
	deliverySecs   *prometheus.HistogramVec
	attemptSeconds *prometheus.HistogramVec
	inFlight       prometheus.Gauge
	postponed      *prometheus.CounterVec
	stale          *prometheus.CounterVec
	trips          *prometheus.CounterVec
	probes         *prometheus.CounterVec
	breaker        *prometheus.GaugeVec

	tally *tally.Registry
	mu    sync.RWMutex
	pairs map[[2]string]*pair // by source and destination
}

func newMetrics(r prometheus.Registerer, t *tally.Registry) *metrics {
	m := &metrics{
		tally: t,
		pairs: map[[2]string]*pair{},
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_attempts_total",
			Help: "Attempts to deliver, by outcome: done, failed (to be retried), spared (failed while the destination is ill), dead (given up), pending (cancelled by a shutdown, or failed by a fault of our own).",
		}, []string{"source", "destination", "outcome"}),
		firsts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_first_attempts_total",
			Help: "First attempts since an event was accepted (fresh), a copy of it made failed or dead work begin again (redriven), or an operator did (replayed); of an event from the provider's list since it was accepted (reconciled); without those that failed while the destination is ill.",
		}, []string{"source", "destination", "origin"}),
		firstFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_first_attempt_failures_total",
			Help: "First attempts that failed, of those in hookonce_first_attempts_total.",
		}, []string{"source", "destination", "origin"}),
		deliverySecs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_delivery_seconds",
			Help:    "Time from the receipt of an event to its delivery, retries included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 14), // 1 ms to 19 h
		}, []string{"source", "destination"}),
		attemptSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_attempt_seconds",
			Help:    "Time that one attempt took until the status of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16), // 0.5 ms to 16 s
		}, []string{"destination"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookonce_attempts_in_flight",
			Help: "Attempts that are under way.",
		}),
		postponed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_deliveries_postponed_total",
			Help: "Deliveries handed back unattempted, because the destination is ill or events like them hang, somebody paused it, or the process stopped.",
		}, []string{"destination"}),
		stale: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_stale_deliveries_total",
			Help: "Attempts at events of which a newer version was delivered already, by policy: flag, deliver, drop.",
		}, []string{"source", "destination", "policy"}),
		trips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_breaker_trips_total",
			Help: "How often a destination was found ill.",
		}, []string{"destination"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_probes_total",
			Help: "Attempts that found out whether a destination still is ill.",
		}, []string{"destination"}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookonce_breaker_state",
			Help: "How a destination stands: 0 healthy, 1 recovering, 2 ill.",
		}, []string{"destination"}),
	}
	r.MustRegister(m.attempts, m.firsts, m.firstFailures, m.deliverySecs, m.attemptSeconds, m.inFlight,
		m.postponed, m.stale, m.trips, m.probes, m.breaker)
	return m
}

// begin begins to count for a destination, which is healthy.
func (m *metrics) begin(destination string) {
	m.breaker.WithLabelValues(destination).Set(Healthy.number())
	for _, v := range []*prometheus.CounterVec{m.postponed, m.trips, m.probes} {
		v.WithLabelValues(destination)
	}
}

// observe counts an attempt that came to an end.
func (m *metrics) observe(w *journal.Work, o journal.Outcome, trace *tracing.Delivery) {
	p := m.pair(w.Source, w.Destination)
	outcome := p.outcomes[outcomeLabel(o)]
	outcome.metric.Inc()
	if o.State == journal.Pending {
		return
	}
	outcome.tally.Inc()
	p.attempts.Inc()
	p.seconds.Observe(o.Duration.Seconds())
	p.durations.Observe(o.Duration)
	if o.State == journal.Done {
		trace.Observe(p.deliverySecs, o.Started.Add(o.Duration).Sub(w.ReceivedAt).Seconds())
	}
	if w.Tries <= 1 && !o.Spared {
		origin := w.Origin
		if origin < 0 || int(origin) >= len(p.first) {
			origin = journal.OriginFresh // one that a later version stored
		}
		p.first[origin].count(o.State != journal.Done)
	}
}

func outcomeLabel(o journal.Outcome) string {
	if o.Spared {
		return "spared"
	}
	return string(o.State)
}

// pair returns what counts the attempts at the events of a source at a destination. There are as many as the journal
// has names of both, which come from configurations.
func (m *metrics) pair(source, destination string) *pair {
	key := [2]string{source, destination}
	m.mu.RLock()
	p := m.pairs[key]
	m.mu.RUnlock()
	if p != nil {
		return p
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pairs[key] == nil {
		m.pairs[key] = m.newPair(source, destination)
	}
	return m.pairs[key]
}

// pair is what counts the attempts at the events of one source at one destination, looked up once.
type pair struct {
	outcomes              map[string]counter
	attempts              *tally.Counter
	first                 [len(firsts)]firstAttempts
	seconds, deliverySecs prometheus.Observer
	durations             *tally.Histogram
}

// counter counts for the metrics and for the tallies.
type counter struct {
	metric prometheus.Counter
	tally  *tally.Counter
}

// Inc counts one.
func (c counter) Inc() {
	c.metric.Inc()
	c.tally.Inc()
}

// firstAttempts count the first attempts of one origin, and those of them that failed.
type firstAttempts struct{ all, failed counter }

func (f *firstAttempts) count(failed bool) {
	f.all.Inc()
	if failed {
		f.failed.Inc()
	}
}

// firsts are the words for first attempts, by their [journal.Origin].
var firsts = [...]struct{ all, failed tally.What }{
	journal.OriginFresh:      {tally.First, tally.FirstFailed},
	journal.OriginRedriven:   {tally.FirstRedriven, tally.FirstRedrivenFailed},
	journal.OriginReplayed:   {tally.FirstReplayed, tally.FirstReplayedFailed},
	journal.OriginReconciled: {tally.FirstReconciled, tally.FirstReconciledFailed},
}

func (m *metrics) newPair(source, destination string) *pair {
	p := &pair{
		outcomes:     map[string]counter{string(journal.Pending): {metric: m.attempts.WithLabelValues(source, destination, string(journal.Pending))}},
		attempts:     m.tally.Counter(source, destination, tally.Attempts),
		seconds:      m.attemptSeconds.WithLabelValues(destination),
		deliverySecs: m.deliverySecs.WithLabelValues(source, destination),
		durations:    m.tally.Durations(source, destination),
	}
	for _, what := range []tally.What{tally.Done, tally.Failed, tally.Spared, tally.Dead} {
		p.outcomes[string(what)] = counter{m.attempts.WithLabelValues(source, destination, string(what)), m.tally.Counter(source, destination, what)}
	}
	for origin, what := range firsts {
		label := journal.Origin(origin).String()
		p.first[origin] = firstAttempts{
			all:    counter{m.firsts.WithLabelValues(source, destination, label), m.tally.Counter(source, destination, what.all)},
			failed: counter{m.firstFailures.WithLabelValues(source, destination, label), m.tally.Counter(source, destination, what.failed)},
		}
	}
	return p
}
