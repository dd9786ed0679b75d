package ingest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/internal/tracing"
	"github.com/prometheus/client_golang/prometheus"
)

// Journal is what ingest needs of the journal.
type Journal interface {
	// Accept makes the entries durable and returns one result for each, in order. An error means
	// that nothing may be acknowledged. The journal may hold on to the entries after it returned.
	Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error)
}

// Answers is what the sources need of the journal whose senders are answered what a destination answered.
type Answers interface {
	// Await waits until an attempt at a delivery has come to its end, and says what it came to. What it
	// returns is durable. It is [journal.Absent] of an event that is not on record. An error means that it is not known in time.
	Await(ctx context.Context, delivery journal.DeliveryID) (journal.DeliveryStatus, error)
}

// Bypasser is what the sources need of the journal whose events are worth delivering while it cannot record
// them.
type Bypasser interface {
	// Bypass delivers events past the store and returns one result for each, in order. An error means that
	// nothing may be acknowledged.
	Bypass(ctx context.Context, entries []*journal.Event, attempt journal.Attempter) ([]journal.Result, error)
}

// Source is one configured endpoint, served under /in/<Name>.
type Source struct {
	// Name is the scope of the source's keys, and the last part of its path.
	Name string
	// Provider verifies the requests and says which events they carry.
	Provider hookonce.Provider
	// Secrets is how many secrets the provider was given. With several, the log says which of them
	// matched, so that one can be retired knowingly. Zero means one.
	Secrets int
	// Headers says which headers of its requests are kept with an event. Nil: those that pass where nothing is known of
	// the sender.
	Headers *header.Rule
	// MaxBody is the size in bytes of the largest body that is read. Needed.
	MaxBody int64
	// Routes say where the events go. None: events are stored and are done.
	Routes []Route
	// DropLogicalDuplicates are the types whose events are stored and not delivered when an earlier one stands for
	// the same change.
	DropLogicalDuplicates []string
	// LogicalDuplicateWindow is how far apart two events for one change can be at the most. Zero: any time.
	LogicalDuplicateWindow time.Duration
	// Allow are the networks that requests may come from. None: all.
	Allow []netip.Prefix
	// Rate is how many requests per second are taken, authentic or not, and Burst how many at once. A
	// rate of zero takes all; a burst of zero is twice the rate.
	Rate  float64
	Burst int
	// Sync answers a request of one event with what its destination answered.
	Sync bool
	// Open delivers events past the store while it is unavailable: those with a key of their own, of the
	// types that one of OpenTypes matches. No OpenTypes match all.
	Open      bool
	OpenTypes []string
	// Deadline is how long a sender may be kept waiting, counted from the headers of its request. Needed with Sync and
	// Open.
	Deadline time.Duration
	// TrustTrace has authentic requests go on with the trace of their sender, which then says whether it is exported.
	TrustTrace bool
}

// Service is a configured endpoint for requests that are no events: a handler gets everything below
// /in/<Name>.
type Service struct {
	// Name is the part of the path, as that of a [Source].
	Name string
	// Handler gets the requests, without /in/<Name> in front of their paths.
	Handler http.Handler
	// MaxBody and MaxAnswer are how much of a request and its answer the handler keeps in memory, in bytes. Needed.
	MaxBody, MaxAnswer int64
	// Keeps reports whether the handler keeps anything of a request in memory. Others are handed to it as they are. Nil: it
	// does of all.
	Keeps func(*http.Request) bool
	// Allow, Rate and Burst are those of a [Source].
	Allow []netip.Prefix
	Rate  float64
	Burst int
	// Through hands the requests to the path of a source, /in/<Name>, to the handler as they are: none is refused, and
	// nothing of them is held. The fields above do not count.
	Through bool
}

// Options are the settings of a [Handler]. All are needed unless it is said otherwise.
type Options struct {
	// Sources and Services have distinct names.
	Sources  []Source
	Services []Service
	Journal  Journal
	// Answers is needed where a source has Sync.
	Answers Answers
	// Bypasser and BypassAttempt are needed where a source has Open. BypassAttempt makes one attempt at a delivery that is
	// on no record.
	Bypasser      Bypasser
	BypassAttempt journal.Attempter
	// MaxReading bounds the memory in bytes of the bodies of all requests under way, verified or not, counted as they arrive, and
	// of the answers of services that work on theirs. Beyond it, or where a source or an address holds more of it than is
	// left, other bodies that are on their way are given up (see bodyMemory), or the answer is a 503. It is raised
	// to what one body of the source with the largest MaxBody may need: four times that, or six times if there are
	// several sources, and for services twice or three times their MaxAnswer besides.
	MaxReading int64
	// MaxQueued and MaxQueuedBytes are the bounds of the journal's queue. A source that takes up more of
	// it than is left is answered 503, so that there is room for the others.
	MaxQueued      int
	MaxQueuedBytes int64
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// BodyTimeout is how long the body of a request may take to arrive, where the server's
	// connection supports deadlines.
	BodyTimeout time.Duration
	// AcceptTimeout is how long the journal may take. It does not end with the request, because a
	// sender that hangs up cancels nothing.
	AcceptTimeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Logger receives a line per event and per rejected request, at a bounded rate unless it takes the
	// level debug, never a body or a secret.
	Logger *slog.Logger
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Tally has the counters of what happens by the minute. Nil: nobody reads them.
	Tally *tally.Registry
	// Watcher is told what becomes of every request. Nil: nobody is.
	Watcher Watcher
	// Cells are those that the events are divided among. Nil: all are accepted here.
	Cells *cells.Cells
	// Tracer makes the spans of requests and events. Nil: there are none.
	Tracer *tracing.Tracer
}

// validate refuses what is missing.
func (o *Options) validate() error {
	switch {
	case o.Journal == nil || o.Now == nil || o.Logger == nil || o.Registerer == nil:
		return errors.New("journal, clock, logger and registerer must be given")
	case o.MaxReading <= 0 || o.MaxQueued <= 0 || o.MaxQueuedBytes <= 0 || o.BodyTimeout <= 0 || o.AcceptTimeout <= 0:
		return errors.New("bounds and timeouts must be more than nothing")
	}
	return nil
}

// Watcher is told what becomes of every request, for people who look on. Unlike the log it hears of all of
// them. Its methods are called while the sender waits, by many goroutines at a time, and must not block.
type Watcher interface {
	// Stored is called for every event that was stored or recognised. Routed is false if no route wanted it.
	Stored(source string, e *hookonce.Event, r journal.Result, routed bool)
	// Greeted is called for every challenge that was answered.
	Greeted(source string)
	// Refused is called for every request that was not acknowledged.
	Refused(refusals.Refusal)
}

// blind is the watcher where there is none.
type blind struct{}

func (blind) Stored(string, *hookonce.Event, journal.Result, bool) {}
func (blind) Greeted(string)                                       {}
func (blind) Refused(refusals.Refusal)                             {}
