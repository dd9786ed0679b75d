package gateway

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// register registers what concerns the process as a whole; what happens to events is counted where it happens.
func (g *Gateway) register(s config.Store) {
	o := g.opt
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hookonce_build_info", Help: "1, with the version of the program and of Go.",
		ConstLabels: prometheus.Labels{"version": o.Version, "go": runtime.Version()},
	})
	build.Set(1)
	o.Registry.MustRegister(build,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hookonce_ready", Help: "1 if an event that comes now can be stored, 0 if its sender is answered 503 because of the store.",
		}, func() float64 {
			if g.opened.Load() && g.takes() == nil {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "hookonce_log_lines_suppressed_total", Help: "Lines of the log that were held back, because there were too many of their kind in a second.",
		}, func() float64 { return float64(loglimit.Suppressed(o.strange)) }),
	)
	if s.Driver == config.SQLite {
		o.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hookonce_journal_free_bytes", Help: "Bytes that are left on the disk of a SQLite file, at least 1; 0 if that is not known.",
		}, func() float64 { return float64(freeBytes(s)) }))
	}
}
