package cells

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of one cell.
type metrics struct {
	number    prometheus.Gauge
	old       prometheus.Gauge
	up        *prometheus.GaugeVec
	events    *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	asked     *prometheus.CounterVec
	conflicts prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		number: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookonce_cell_map", Help: "Number of the map of cells that counts here.",
		}),
		old: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookonce_cell_map_differs", Help: "1 while the map of the configuration is not the one that counts.",
		}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookonce_cell_up", Help: "1 if another cell answered when it was asked last, and has the same map.",
		}, []string{"cell"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_cell_forwarded_events_total", Help: "Events that were handed to the cell that owns them, by what came of it.",
		}, []string{"cell", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hookonce_cell_forward_seconds", Help: "Time until another cell answered what was handed to it.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
		}, []string{"cell"}),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_cell_questions_total", Help: "Questions to a cell for keys that it owned by an earlier map, by what came of them.",
		}, []string{"cell", "outcome"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hookonce_cell_map_conflicts_total", Help: "How often another cell had another map under the same number.",
		}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.number, m.old, m.up, m.events, m.seconds, m.asked, m.conflicts} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// show shows which map counts.
func (m *metrics) show(s *state, told *Configured) {
	number := int64(0)
	if newest := s.chain.Newest(); newest != nil {
		number = newest.Number
	}
	m.number.Set(float64(number))
	differs := 0.
	if told != nil && told.Number != number {
		differs = 1
	}
	m.old.Set(differs)
}

func (m *metrics) reached(cell string, up bool) {
	v := 0.
	if up {
		v = 1
	}
	m.up.WithLabelValues(cell).Set(v)
}

// keep forgets how the cells stand that nobody speaks to any more: what they are would be told for ever.
func (m *metrics) keep(peers map[string]bool, reached map[string]error) {
	for cell := range reached {
		if !peers[cell] {
			delete(reached, cell)
			m.up.DeleteLabelValues(cell)
		}
	}
}

func outcome(err error) string {
	if err == nil {
		return "answered"
	}
	var refused *RefusedError
	switch {
	case errors.Is(err, ErrMaps):
		return "other_map"
	case errors.As(err, &refused) && refused.Busy():
		return "busy"
	case errors.Is(err, ErrRefused):
		return "refused"
	}
	return "away"
}

func (m *metrics) forwarded(cell string, events int, took time.Duration, err error) {
	m.events.WithLabelValues(cell, outcome(err)).Add(float64(events))
	m.seconds.WithLabelValues(cell).Observe(took.Seconds())
}

func (m *metrics) askedOf(cell string, err error) { m.asked.WithLabelValues(cell, outcome(err)).Inc() }
