package gateway

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// Options are what a gateway gets besides its configuration. The zero value of every field means its
// default.
type Options struct {
	// Logger receives what operators need to know, never bodies or secrets. Default: nothing is
	// logged.
	Logger *slog.Logger
	// strange is Logger, at a bounded rate, for lines that strangers can cause.
	strange *slog.Logger
	// Version is reported in the log and the metrics. Default "(devel)".
	Version string
	// Registry receives the metrics that /metrics shows. Default: a new one, with the metrics of
	// the Go runtime and the process.
	Registry *prometheus.Registry
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Load reads the configuration anew, for [Gateway.Reload]. Nil: there is nothing to read again.
	Load func() (*config.Config, error)
	// Level is what Logger goes by; a reload sets it to the configured one. Nil: it stays.
	Level *slog.LevelVar
	// Watcher is told what becomes of every request and every attempt, as it happens. Default: nobody is.
	Watcher Watcher
	// Memory is told at the start, and when the configuration was read again, how many bytes the process takes at most if
	// garbage is collected in time. It is meant for [debug.SetMemoryLimit], which changes the whole process. Nil: nobody is told.
	Memory func(bytes int64)
}

// Watcher is told what becomes of every request and every attempt, for people who look on. Its methods are
// called by many goroutines at a time and must not block.
type Watcher interface {
	ingest.Watcher
	deliver.Watcher
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.strange = loglimit.Bound(o.Logger)
	o.Version = cmp.Or(o.Version, "(devel)")
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
		o.Registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
