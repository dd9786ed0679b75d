package schedule

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

// metrics are those of all sources. Nil counts nothing.
type metrics struct {
	missing, recovered, failed, runs *prometheus.CounterVec
	through                          *prometheus.GaugeVec
}

func newMetrics(to prometheus.Registerer) *metrics {
	if to == nil {
		return nil
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hookonce_reconcile_" + name, Help: help}, labels)
	}
	m := &metrics{
		missing:   counter("missing_total", "Events that a sender made and that never arrived, found by comparing with its list", "source"),
		recovered: counter("recovered_total", "Missing events that were stored from the list, or that the sender was asked to send again", "source"),
		failed:    counter("failures_total", "Missing events that could neither be stored nor be asked for", "source"),
		runs:      counter("runs_total", "Comparisons of a source with its sender's list, by result: ok or failed", "source", "result"),
		through: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookonce_reconcile_through_timestamp_seconds",
			Help: "Unix time up to which a source was compared with its sender's list, by whichever gateway, as this one knows it",
		}, []string{"source"}),
	}
	to.MustRegister(m.missing, m.recovered, m.failed, m.runs, m.through)
	return m
}

// begin makes the counters of a source, so that the first event that is counted is an increase.
func (m *metrics) begin(source string) {
	if m == nil {
		return
	}
	for _, c := range []*prometheus.CounterVec{m.missing, m.recovered, m.failed} {
		c.WithLabelValues(source)
	}
	m.runs.WithLabelValues(source, "ok")
	m.runs.WithLabelValues(source, "failed")
}

// run counts a run.
func (m *metrics) run(source string, found News, err error) {
	if m == nil {
		return
	}
	m.missing.WithLabelValues(source).Add(float64(found.Missing))
	m.recovered.WithLabelValues(source).Add(float64(found.Recovered()))
	m.failed.WithLabelValues(source).Add(float64(found.Failed))
	result := map[bool]string{true: "ok", false: "failed"}[err == nil]
	m.runs.WithLabelValues(source, result).Inc()
}

// standing notes how far a source was compared.
func (m *metrics) standing(source string, mark journal.Mark) {
	if m != nil && !mark.Through.IsZero() {
		m.through.WithLabelValues(source).Set(float64(mark.Through.UnixMilli()) / 1000)
	}
}
