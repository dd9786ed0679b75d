package ingest

import (
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// metrics are the vectors of all sources.
type metrics struct {
	received, verified, events, unrouted, logicalDuplicates, reseen, rejected *prometheus.CounterVec

	lastReceived, lastVerified *prometheus.GaugeVec
	seconds, copyAge           *prometheus.HistogramVec

	tally *tally.Registry

	mu   sync.Mutex
	came map[string]*reseen // by source
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

// Rejected is the metric of requests that were not acknowledged, by source and reason. Whoever refuses some before there is a
// [Handler] counts them there, and the handler goes on with it: to r it is registered once.
func Rejected(r prometheus.Registerer) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hookonce_rejected_total", Help: "Requests that were not acknowledged, by reason.",
	}, []string{"source", "reason"})
	var there prometheus.AlreadyRegisteredError
	switch err := r.Register(v); {
	case errors.As(err, &there):
		return there.ExistingCollector.(*prometheus.CounterVec)
	case err != nil:
		panic(err)
	}
	return v
}

func newMetrics(r prometheus.Registerer, t *tally.Registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"source"})
		r.MustRegister(v)
		return v
	}
	var ages []float64
	for _, b := range tally.Ages() {
		if b.Upper > 0 {
			ages = append(ages, b.Upper.Seconds())
		}
	}
	m := &metrics{
		tally:             t,
		came:              map[string]*reseen{},
		received:          counter("hookonce_received_total", "Requests received.", "source"),
		verified:          counter("hookonce_verified_total", "Authentic requests, by the number of the secret that matched, from 1.", "source", "secret"),
		events:            counter("hookonce_events_total", "Events, by what became of them: accepted (stored as new under a key), duplicate (the key was stored before, with the same content), conflict (with other content), unkeyed (stored without a key: copies cannot be recognised), unprotected (delivered past the store while it was unavailable).", "source", "status"),
		unrouted:          counter("hookonce_unrouted_total", "Events stored as new that go nowhere, by reason: unmatched (no route of their source matches them) or no_routes (it has none).", "source", "reason"),
		logicalDuplicates: counter("hookonce_logical_duplicates_total", "Events stored as new for whose change an earlier one stands under another key.", "source"),
		reseen:            counter("hookonce_reseen_events_total", "Events of which copies came: each counts once an hour and process, however many copies there are.", "source"),
		lastReceived:      gauge("hookonce_last_received_timestamp_seconds", "When the last request came."),
		lastVerified:      gauge("hookonce_last_verified_timestamp_seconds", "When the last authentic request came."),
		rejected:          Rejected(r),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookonce_accept_seconds",
			Help:    "Time from a request's headers to its answer, for requests to a source.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15), // 0.5 ms to 8 s
		}, []string{"source"}),
	}
	m.copyAge = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "hookonce_copy_age_seconds",
		Help:    "Time from when an event was accepted to when a copy of it came.",
		Buckets: ages,
	}, []string{"source"})
	r.MustRegister(m.seconds, m.copyAge)
	return m
}

// sourceMetrics are the children of one source, looked up once.
type sourceMetrics struct {
	received          counter
	unrouted          counter
	logicalDuplicates prometheus.Counter
	verified          []prometheus.Counter // by secret
	secrets           []*tally.Counter     // by secret, where there are several
	events            map[journal.Status]counter
	seconds           prometheus.Observer
	authentic         *tally.Counter

	lastReceived, lastVerified prometheus.Gauge

	reseen   counter
	came     *reseen
	copyAge  prometheus.Observer
	copyAges *tally.Histogram
}

// words are the statuses as tallies name them.
var words = map[journal.Status]tally.What{
	journal.Accepted: tally.Accepted, journal.Duplicate: tally.Copies, journal.Conflict: tally.Conflicts,
	journal.Unkeyed: tally.Unkeyed, journal.Unprotected: tally.Unprotected,
}

func (m *metrics) of(s Source) sourceMetrics {
	source := s.Name
	verified := make([]prometheus.Counter, max(1, s.Secrets))
	for i := range verified {
		verified[i] = m.verified.WithLabelValues(source, strconv.Itoa(i+1))
	}
	var secrets []*tally.Counter
	if len(verified) > 1 {
		for i := range verified {
			secrets = append(secrets, m.tally.Counter(source, "", tally.Secret(i+1)))
		}
	}
	events := make(map[journal.Status]counter, len(messages)) // each is there before the first event
	for status := range messages {
		events[status] = counter{m.events.WithLabelValues(source, string(status)), m.tally.Counter(source, "", words[status])}
	}
	return sourceMetrics{
		verified:          verified,
		secrets:           secrets,
		received:          m.receivedOf(source),
		unrouted:          counter{m.unrouted.WithLabelValues(source, unroutedReason(s)), m.tally.Counter(source, "", tally.Unrouted)},
		logicalDuplicates: m.logicalDuplicates.WithLabelValues(source),
		events:            events,
		seconds:           m.seconds.WithLabelValues(source),
		authentic:         m.tally.Counter(source, "", tally.Verified),

		lastReceived: m.lastReceived.WithLabelValues(source),
		lastVerified: m.lastVerified.WithLabelValues(source),

		reseen:   counter{m.reseen.WithLabelValues(source), m.tally.Counter(source, "", tally.Reseen)},
		came:     m.cameOf(source),
		copyAge:  m.copyAge.WithLabelValues(source),
		copyAges: m.tally.Ages(source),
	}
}

// unroutedReason is why an event of a source may go nowhere. A source that leads nowhere was meant to.
func unroutedReason(s Source) string {
	if len(s.Routes) == 0 {
		return "no_routes"
	}
	return "unmatched"
}

// receivedOf counts the requests to a source or service.
func (m *metrics) receivedOf(name string) counter {
	return counter{m.received.WithLabelValues(name), m.tally.Counter(name, "", tally.Received)}
}

// cameOf returns which events of a source came again, as far as is known since it was configured.
func (m *metrics) cameOf(source string) *reseen {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came[source] == nil {
		m.came[source] = new(reseen)
	}
	return m.came[source]
}

// keep forgets which events came again of sources that are not among these.
func (m *metrics) keep(sources map[string]*endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.came, func(source string, _ *reseen) bool { return sources[source] == nil })
}

// receivedAt counts a request.
func (m *sourceMetrics) receivedAt(now time.Time) {
	m.received.Inc()
	m.lastReceived.Set(seconds(now))
}

// copied counts a copy of an event.
func (m *sourceMetrics) copied(event int64, now time.Time) {
	age := max(0, now.Sub(journal.IDTime(event)))
	m.copyAge.Observe(age.Seconds())
	m.copyAges.Observe(age)
	if m.came.first(event, now.Unix()/3600) {
		m.reseen.Inc()
	}
}

// seconds is a time as metrics have it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// verifiedAt counts an authentic request, and the secret that matched for providers that say which.
func (m *sourceMetrics) verifiedAt(now time.Time, secret int) {
	m.authentic.Inc()
	m.lastVerified.Set(seconds(now))
	if 1 <= secret && secret <= len(m.verified) {
		m.verified[secret-1].Inc()
		if m.secrets != nil {
			m.secrets[secret-1].Inc()
		}
	}
}
