package deliver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

type metrics struct {
	attempts       *prometheus.CounterVec
	firstFailures  *prometheus.CounterVec
	deliverySecs   *prometheus.HistogramVec
	attemptSeconds *prometheus.HistogramVec
	inFlight       prometheus.Gauge
	postponed      *prometheus.CounterVec
	stale          *prometheus.CounterVec
	trips          *prometheus.CounterVec
	probes         *prometheus.CounterVec
	breaker        *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_attempts_total",
			Help: "Attempts to deliver, by outcome: done, failed (to be retried), spared (failed while the destination is ill), dead (given up), pending (cancelled by a shutdown, or failed by a fault of our own).",
		}, []string{"source", "destination", "outcome"}),
		firstFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_first_attempt_failures_total",
			Help: "Events whose first attempt since they were accepted or re-driven failed.",
		}, []string{"source", "destination"}),
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
	r.MustRegister(m.attempts, m.firstFailures, m.deliverySecs, m.attemptSeconds, m.inFlight,
		m.postponed, m.stale, m.trips, m.probes, m.breaker)
	return m
}

func (m *metrics) observe(w *journal.Work, o journal.Outcome) {
	m.attempts.WithLabelValues(w.Source, w.Destination, outcomeLabel(o)).Inc()
	if o.State == journal.Pending {
		return
	}
	m.attemptSeconds.WithLabelValues(w.Destination).Observe(o.Duration.Seconds())
	if o.State == journal.Done {
		took := o.Started.Add(o.Duration).Sub(w.ReceivedAt)
		m.deliverySecs.WithLabelValues(w.Source, w.Destination).Observe(took.Seconds())
		return
	}
	if w.Tries <= 1 && !o.Spared {
		m.firstFailures.WithLabelValues(w.Source, w.Destination).Inc()
	}
}

func outcomeLabel(o journal.Outcome) string {
	if o.Spared {
		return "spared"
	}
	return string(o.State)
}
