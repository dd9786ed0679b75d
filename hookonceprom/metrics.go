// Package hookonceprom counts, for Prometheus, what the handlers of hookonce do:
//
//	metrics := hookonceprom.New(prometheus.DefaultRegisterer)
//	handler := hookonce.Webhook(store, "billing", stripe, handle, hookonce.WithObserver(metrics.Observe))
//
// Three numbers say how it stands: how many first attempts fail, how many events came again, and how many rows the
// janitor deletes ([Metrics.ObservePurge]).
//
//	rate(hookonce_handler_first_attempt_failures_total[5m]) / rate(hookonce_handler_first_attempts_total[5m])
//	sum by (source) (rate(hookonce_handler_outcomes_total{status=~"duplicate|conflict"}[5m]))
//	increase(hookonce_purged_rows_total[1d])
//
// A relay tells how its outbox does ([Metrics.ObserveEffect]): an effect with the status "dead" needs somebody.
//
// Labels are the source or the name of an effect, which the program names, and words of closed sets: never a key, a type or
// an error.
package hookonceprom

import (
	"cmp"
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/relay"
)

// Metrics counts outcomes. Its methods are safe for concurrent use.
type Metrics struct {
	outcomes, rejected, firsts, firstFailures, purged, purgeFailures, effects *prometheus.CounterVec
	seconds                                                                   *prometheus.HistogramVec
}

// New returns metrics that r has. It panics if r has them already: all handlers of a program share one.
func New(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		outcomes:      counter("hookonce_handler_outcomes_total", "Events, and requests with a key, by what became of them: accepted, duplicate, conflict, unkeyed, busy, failed, dead.", "source", "status"),
		rejected:      counter("hookonce_handler_rejected_total", "Requests that were rejected, by reason.", "source", "reason"),
		firsts:        counter("hookonce_handler_first_attempts_total", "Events of which the first attempt was made.", "source"),
		firstFailures: counter("hookonce_handler_first_attempt_failures_total", "First attempts that failed.", "source"),
		purged:        counter("hookonce_purged_rows_total", "Rows that the janitor deleted, by kind.", "kind"),
		purgeFailures: counter("hookonce_purge_failures_total", "Purges of the janitor that failed, by kind.", "kind"),
		effects:       counter("hookonce_effect_attempts_total", "Attempts of a relay at effects, by what became of them: done, failed, dead, handed back, stale, unrecorded.", "name", "status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hookonce_handler_seconds", Help: "Time from the verified request to its outcome, waiting included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16), // 0.5 ms to 16 s
		}, []string{"source"}),
	}
	r.MustRegister(m.seconds)
	return m
}

// Observe counts one outcome: give it to [hookonce.WithObserver].
func (m *Metrics) Observe(_ context.Context, o hookonce.Observation) {
	if o.Status == "rejected" {
		m.rejected.WithLabelValues(o.Source, o.Reason).Inc()
		return
	}
	m.outcomes.WithLabelValues(o.Source, o.Status).Inc()
	m.seconds.WithLabelValues(o.Source).Observe(o.Duration.Seconds())
	if o.Attempt == 1 {
		m.firsts.WithLabelValues(o.Source).Inc()
		if o.Err != nil {
			m.firstFailures.WithLabelValues(o.Source).Inc()
		}
	}
}

// ObservePurge counts one purge: give it to [janitor.WithObserver].
func (m *Metrics) ObservePurge(_ context.Context, o janitor.Observation) {
	kind := string(cmp.Or(o.Kind, hookonce.PurgeEvents))
	m.purged.WithLabelValues(kind).Add(float64(o.Deleted))
	if o.Err != nil {
		m.purgeFailures.WithLabelValues(kind).Inc()
	}
}

// ObserveEffect counts one attempt at an effect: give it to [relay.WithObserver].
func (m *Metrics) ObserveEffect(_ context.Context, o relay.Observation) {
	m.effects.WithLabelValues(o.Name, relay.StatusDead).Add(0) // there before it rises, or the first is no increase
	m.effects.WithLabelValues(o.Name, o.Status).Inc()
}
