package observe

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts the requests of all sources that are observed.
type Metrics struct {
	forwarded  *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	seen       *prometheus.CounterVec
	unrecorded *prometheus.CounterVec
}

// NewMetrics registers the metrics. It panics when they are registered already.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		forwarded:  counter("hookonce_observed_requests_total", "Requests forwarded by sources with mode observe, by the application's answer: 2xx, 3xx, 4xx, 5xx or none.", "source", "answer"),
		seen:       counter("hookonce_observed_total", "Requests of sources with mode observe, by what they were: event, notice, refused, handshake, unread.", "source", "kind"),
		unrecorded: counter("hookonce_observed_unrecorded_total", "Requests of sources with mode observe, and events of them, that are not on record, by reason. They were forwarded.", "source", "reason"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_observed_seconds",
			Help:    "Time from a request of a source with mode observe to the beginning of the application's answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"source"}),
	}
	r.MustRegister(m.seconds)
	return m
}

// begin begins to count for a source what alerts go by: they see only what grows.
func (m *Metrics) begin(source string) {
	for _, reason := range []string{ReasonMemory, ReasonQueue, ReasonStore, ReasonUndecided, ReasonPanic} {
		m.unrecorded.WithLabelValues(source, reason)
	}
}

// class is the label of an answer.
func class(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return string(rune('0'+status/100)) + "xx"
}
