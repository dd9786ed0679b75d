package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
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
	// Listen binds an address, and Dial connects to one of a destination's or of another cell's. Default: TCP. With a Dial of its
	// own nothing asks which addresses may be connected to.
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// Store opens the journal's store, in place of the configured one. What needs a database (the tables of the library,
	// sources in modes observe and idempotency) is missing then. Nil: the configured one is opened.
	Store func(ctx context.Context) (*OpenedStore, error)
	// Memory is told at the start, and when the configuration was read again, how many bytes the process takes at most if
	// garbage is collected in time. It is meant for [debug.SetMemoryLimit], which changes the whole process. Nil: nobody is told.
	Memory func(bytes int64)
}

// OpenedStore is a store for the journal, which the gateway closes.
type OpenedStore struct {
	journal.Store
	// Notifier tells the gateways on the store of work that is due at once. Nil: they find it when they poll.
	Notifier journal.Notifier
	// IDs makes the identifiers of events.
	IDs *journal.IDs
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
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
