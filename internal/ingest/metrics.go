package ingest

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

// metrics are the vectors of all sources.
type metrics struct {
	received, verified, events, unrouted, logicalDuplicates, rejected *prometheus.CounterVec

	seconds *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &metrics{
		received:          counter("hookonce_received_total", "Requests received.", "source"),
		verified:          counter("hookonce_verified_total", "Authentic requests, by the number of the secret that matched, from 1.", "source", "secret"),
		events:            counter("hookonce_events_total", "Events, by what became of them: accepted (stored as new under a key), duplicate (the key was stored before, with the same content), conflict (with other content), unkeyed (stored without a key: copies cannot be recognised), unprotected (delivered past the store while it was unavailable).", "source", "status"),
		unrouted:          counter("hookonce_unrouted_total", "Events stored as new that go nowhere, because no route matches them or their source has none.", "source"),
		logicalDuplicates: counter("hookonce_logical_duplicates_total", "Events stored as new for whose change an earlier one stands under another key.", "source"),
		rejected:          counter("hookonce_rejected_total", "Requests that were not acknowledged, by reason.", "source", "reason"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_accept_seconds",
			Help:    "Time from a request's headers to its answer, for requests to a source.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15), // 0.5 ms to 8 s
		}, []string{"source"}),
	}
	r.MustRegister(m.seconds)
	return m
}

// sourceMetrics are the children of one source, looked up once.
type sourceMetrics struct {
	received          prometheus.Counter
	unrouted          prometheus.Counter
	logicalDuplicates prometheus.Counter
	verified          []prometheus.Counter // by secret
	events            map[journal.Status]prometheus.Counter
	seconds           prometheus.Observer
}

func (m *metrics) of(s Source) sourceMetrics {
	source := s.Name
	verified := make([]prometheus.Counter, max(1, s.Secrets))
	for i := range verified {
		verified[i] = m.verified.WithLabelValues(source, strconv.Itoa(i+1))
	}
	events := make(map[journal.Status]prometheus.Counter, len(messages)) // each is there before the first event
	for status := range messages {
		events[status] = m.events.WithLabelValues(source, string(status))
	}
	return sourceMetrics{
		verified:          verified,
		received:          m.received.WithLabelValues(source),
		unrouted:          m.unrouted.WithLabelValues(source),
		logicalDuplicates: m.logicalDuplicates.WithLabelValues(source),
		events:            events,
		seconds:           m.seconds.WithLabelValues(source),
	}
}

// verifiedBy counts a request under the secret that matched, for providers that say which.
func (m *sourceMetrics) verifiedBy(secret int) {
	if 1 <= secret && secret <= len(m.verified) {
		m.verified[secret-1].Inc()
	}
}
