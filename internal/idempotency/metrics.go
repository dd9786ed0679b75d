package idempotency

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
)

// Metrics counts the requests of all services.
type Metrics struct {
	requests *prometheus.CounterVec
	rejected *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// NewMetrics registers the metrics. It panics when they are registered already.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_idempotent_requests_total",
			Help: "Requests with an Idempotency-Key, by what became of them: accepted, duplicate, conflict, busy, refused (by the service, which turns the caller away: nothing is kept), failed, dead.",
		}, []string{"source", "status"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_idempotent_rejected_total",
			Help: "Requests of sources with mode idempotency that were refused, by reason.",
		}, []string{"source", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_idempotent_seconds",
			Help:    "Time from a request with an Idempotency-Key to its answer, waiting included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"source", "status"}),
	}
	r.MustRegister(m.requests, m.rejected, m.seconds)
	return m
}

// begin begins to count for a service what alerts go by: they see only what grows.
func (m *Metrics) begin(source string) { m.requests.WithLabelValues(source, "failed") }

func (m *Metrics) observe(ctx context.Context, source string, o hookonce.Observation) {
	status := o.Status
	switch {
	case status == "rejected":
		m.reject(source, o.Reason)
		return
	case status == "failed" && hookonce.FailureOf(ctx, hookonce.Ref{}, o.Err).Forget:
		status = "refused" // by the service, which anybody can bring about: not what somebody has to look at
	}
	m.requests.WithLabelValues(source, status).Inc()
	m.seconds.WithLabelValues(source, status).Observe(o.Duration.Seconds())
}

// reject counts a request that was refused.
func (m *Metrics) reject(source, reason string) { m.rejected.WithLabelValues(source, reason).Inc() }
