package gateway

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/connlimit"
)

// What connections may cost, besides the settings max_connections and max_connections_per_address.
const (
	descriptorShare = 2    // the part of the process's file descriptors that connections from providers may have is one in so many
	addressShare    = 4    // of these connections one address may have one in so many, unless it is configured
	waitingShare    = 2    // of these connections requests to sources that wait for an answer may have one in so many, in equal parts
	maxAdmin        = 1024 // connections to the admin listener, and half of that from one address
	adminShare      = 8    // but no more than one in so many of the descriptors
	maxScrapes      = 2    // answers of /metrics that are being made at once
	spareAdmin      = 8    // descriptors that are kept back for it, so that it answers when there are no others
	spareIngest     = 2    // and for providers, who then take the place of others
	maxLargeHeaders = 512  // requests at a time with a header of more than 4 KiB, for each listener
	maxHeaderLines  = 200  // of one request, the first line included
)

// connectionLimits returns how many connections each listener may have in a process that may have so many file
// descriptors. Zero: nobody knows.
func connectionLimits(p *plan, descriptors int) (ingest, admin connlimit.Limits) {
	ingest = p.connections
	admin = connlimit.Limits{Max: maxAdmin, PerAddress: maxAdmin / 2}
	if descriptors > 0 {
		ingest.Max = min(ingest.Max, max(1, descriptors/descriptorShare))
		admin.Max = min(admin.Max, max(1, descriptors/adminShare))
	}
	if ingest.PerAddress == 0 {
		ingest.PerAddress = max(1, ingest.Max/addressShare)
	}
	ingest.PerGroup = max(1, ingest.Max/waitingShare/max(1, len(p.waiting)))
	ingest.PerAddress, admin.PerAddress = min(ingest.PerAddress, ingest.Max), min(admin.PerAddress, max(1, admin.Max/2))
	return ingest, admin
}

// checkDescriptors says if there are fewer connections than somebody asked for.
func checkDescriptors(log *slog.Logger, p *plan, limits connlimit.Limits) {
	if limits.Max < p.connections.Max {
		level := slog.LevelInfo
		if p.cfg.Says("max_connections") {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "gateway: max_connections is lowered to half of the file descriptors that the process may have; raise "+limitNames,
			"max_connections", limits.Max, "configured", p.connections.Max)
	}
}

// connectionMetrics are those of both listeners.
type connectionMetrics struct {
	registry     prometheus.Registerer
	cut, refused *prometheus.CounterVec
	exhausted    *prometheus.CounterVec
}

func newConnectionMetrics(r prometheus.Registerer) *connectionMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	return &connectionMetrics{
		registry:  r,
		cut:       counter("hookonce_connections_cut_total", "Connections that were closed to make room while it was their peer's turn, by the limit that was reached.", "listener", "reason"),
		refused:   counter("hookonce_connections_refused_total", "Connections that were turned away before a request was read, by the limit that was reached.", "listener", "reason"),
		exhausted: counter("hookonce_descriptors_exhausted_total", "Times that a connection could not be accepted for want of file descriptors or memory.", "listener"),
	}
}

// show registers how many connections a listener has, and begins to count what it loses: an alert on what grows does not
// see a count that begins at 1.
func (m *connectionMetrics) show(name string, l *connlimit.Listener) {
	m.exhausted.WithLabelValues(name)
	for _, cause := range connlimit.Causes() {
		m.cut.WithLabelValues(name, string(cause))
		m.refused.WithLabelValues(name, string(cause))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookonce_connections", Help: "Open connections.", ConstLabels: prometheus.Labels{"listener": name},
	}, func() float64 { return float64(l.Open()) }))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookonce_connections_max", Help: "How many connections there may be.", ConstLabels: prometheus.Labels{"listener": name},
	}, func() float64 { return float64(l.Max()) }))
}

// connectionWatcher counts and logs what one listener loses to limits.
type connectionWatcher struct {
	name    string
	metrics *connectionMetrics
	log     *slog.Logger // at a bounded rate
}

// Cut implements [connlimit.Watcher].
func (w *connectionWatcher) Cut(by connlimit.Cause, from netip.Prefix) {
	w.metrics.cut.WithLabelValues(w.name, string(by)).Inc()
	w.log.Warn("gateway: a connection on which nothing was worked on was cut to make room", "listener", w.name, "reason", by, "address", from)
}

// Refused implements [connlimit.Watcher].
func (w *connectionWatcher) Refused(by connlimit.Cause, from netip.Prefix) {
	w.metrics.refused.WithLabelValues(w.name, string(by)).Inc()
	w.log.Warn("gateway: a connection was turned away", "listener", w.name, "reason", by, "address", from)
}

// Exhausted implements [connlimit.Watcher].
func (w *connectionWatcher) Exhausted(err error) {
	w.metrics.exhausted.WithLabelValues(w.name).Inc()
	w.log.Error("gateway: a connection cannot be accepted, because there are no file descriptors left; raise "+limitNames+", or lower max_connections",
		"listener", w.name, "error", err)
}

// limitNames are what the limit on file descriptors is called.
const limitNames = "ulimit -n, LimitNOFILE of systemd or --ulimit nofile of Docker"
