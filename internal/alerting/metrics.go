package alerting

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

type metrics struct {
	told      *prometheus.CounterVec
	evaluated prometheus.Gauge

	mu            sync.Mutex
	stored, local map[[2]string]int // firing, by rule and severity
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		told: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hookonce_alert_notifications_total",
			Help: "Notifications that this process sent, by address and outcome: sent or failed. What failed is sent again."}, []string{"address", "outcome"}),
		evaluated: prometheus.NewGauge(prometheus.GaugeOpts{Name: "hookonce_alerts_last_evaluation_timestamp_seconds",
			Help: "When this process last evaluated alerts and put them on record; 0: never."}),
	}
	if r != nil {
		r.MustRegister(m, m.told, m.evaluated)
	}
	return m
}

var firing = prometheus.NewDesc("hookonce_alerts",
	"Alerts that fire, by rule and severity: those of all gateways on the store, and what is wrong with the store of this one.", []string{"rule", "severity"}, nil)

// Describe implements [prometheus.Collector], for what fires.
func (m *metrics) Describe(to chan<- *prometheus.Desc) { to <- firing }

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.stored)
	if all == nil {
		all = map[[2]string]int{}
	}
	for labels, n := range m.local {
		all[labels] += n
	}
	for labels, n := range all {
		to <- prometheus.MustNewConstMetric(firing, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// clear has nothing fire.
func (m *metrics) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored, m.local = nil, nil
}

// tell counts notifications.
func (m *metrics) tell(address string, n int, err error) {
	outcome := "sent"
	if err != nil {
		outcome = "failed"
	}
	m.told.WithLabelValues(address, outcome).Add(float64(n))
}

// count shows what fires once changes are made.
func (m *metrics) count(b *journal.AlertBook, c *journal.AlertChanges) { m.show(b, c, &m.stored) }

func (m *metrics) countLocal(b *journal.AlertBook, c *journal.AlertChanges) { m.show(b, c, &m.local) }

func (m *metrics) show(b *journal.AlertBook, c *journal.AlertChanges, which *map[[2]string]int) {
	latest := map[journal.AlertID]journal.Alert{}
	for _, a := range b.Alerts {
		latest[a.AlertID] = a
	}
	for _, a := range c.Put {
		latest[a.AlertID] = a
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	*which = map[[2]string]int{}
	for _, a := range latest {
		if a.State == journal.AlertFiring {
			(*which)[[2]string{a.Rule, a.Severity}]++
		}
	}
}
