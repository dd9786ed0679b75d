package alerting

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

type metrics struct {
	firing    *prometheus.GaugeVec
	told      *prometheus.CounterVec
	evaluated prometheus.Gauge

	mu            sync.Mutex
	stored, local map[[2]string]int // firing, by rule and severity
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		firing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hookonce_alerts",
			Help: "Alerts that fire, by rule and severity: those of all gateways on the store, and what is wrong with the store of this one."}, []string{"rule", "severity"}),
		told: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hookonce_alert_notifications_total",
			Help: "Notifications that this process sent, by address and outcome: sent or failed. What failed is sent again."}, []string{"address", "outcome"}),
		evaluated: prometheus.NewGauge(prometheus.GaugeOpts{Name: "hookonce_alerts_last_evaluation_timestamp_seconds",
			Help: "When this process last evaluated alerts and put them on record; 0: never."}),
	}
	if r != nil {
		r.MustRegister(m.firing, m.told, m.evaluated)
	}
	return m
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
	m.firing.Reset()
	for _, counts := range []map[[2]string]int{m.stored, m.local} {
		for labels, n := range counts {
			m.firing.WithLabelValues(labels[0], labels[1]).Add(float64(n))
		}
	}
}
