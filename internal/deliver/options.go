package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/internal/tracing"
)

// Options are the settings of a [Deliverer]. All are needed unless it is said otherwise.
type Options struct {
	Journal Journal
	// Destinations are the places to deliver to, by name. The journal is expected to bring work for
	// these alone; other work is handed back.
	Destinations map[string]Destination
	// Relayed are the sources whose senders are answered what the destination answered: the answers to
	// their events are read whole and become a part of the outcome. Each has the longest time that one of its senders waits.
	Relayed map[string]time.Duration
	// Now is the clock.
	Now func() time.Time
	// Logger receives a debug line per delivery, a warning per failed attempt and an error per event
	// that is given up; never a body or a secret.
	Logger *slog.Logger
	// Tally has the counters of what happens by the minute. Nil: nobody reads them.
	Tally *tally.Registry
	// Watcher is told of every attempt. Nil: nobody is.
	Watcher Watcher
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Dial connects to destinations. Nil: over TCP, to the addresses that their policies allow.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Tracer makes the spans of attempts, and their context is passed on. Nil: there are none.
	Tracer *tracing.Tracer
}

// Journal is what deliver needs of the journal.
type Journal interface {
	// Work returns the channel of leased deliveries. It is closed when the journal is.
	Work() <-chan *journal.Work
	// Current reports whether the lease of a delivery still is ours. It does not block.
	Current(journal.Held) bool
	// Finish records an outcome. It does not block.
	Finish(journal.Outcome)
	// Paused reports whether an operator has paused a destination: what waits for it goes back to the journal,
	// which brings nothing for it meanwhile. It does not block.
	Paused(destination string) bool
	// Suspend brings as little work for a destination as r says. The zero Rest ends that. It does not block.
	Suspend(destination string, r journal.Rest)
}

// Watcher is told of every attempt, for people who look on. Attempted is called by many goroutines at a time
// and must not block.
type Watcher interface {
	Attempted(w *journal.Work, o journal.Outcome)
}

// Destination is one place to deliver to.
type Destination struct {
	// Name is what the journal calls it.
	Name string
	// URL is where events are POSTed to, http or https. A user and password in it are sent as basic
	// authentication.
	URL string
	// Timeout bounds one attempt, from dialling to the status of the answer. Needed.
	Timeout time.Duration
	// Schedule says when failed attempts are tried again. Needed.
	Schedule retry.Schedule
	// GiveUp is how long after the receipt of an event it may still be tried again: a retry that would
	// come later is not made, and the event is dead. An attempt that begins later all the same, because
	// the event was re-driven or had to wait, has the whole of its schedule. Zero: the schedule alone
	// decides.
	GiveUp time.Duration
	// Concurrency is how many attempts at it are under way at once. Needed.
	Concurrency int
	// Rate is how many attempts begin per second, evenly spread. Zero: as many as there are.
	Rate float64
	// Permanent are the statuses, besides 410, after which an event is dead at once.
	Permanent []int
	// Header is added to every delivery, in place of what the provider sent under the same name. It can
	// not hold what is ours to set: see docs/destinations.md.
	Header http.Header
	// Rules say which headers of the events of a source are passed on, by the name of the source. One without passes
	// those that pass where nothing is known of the sender.
	Rules map[string]*header.Rule
	// PassHeader and DropHeader choose among them: none but these, which are passed whatever the rule says, or all but
	// these. At most one of them may be given. Those that say how to read the body, Content-Type and Content-Encoding,
	// always are passed.
	PassHeader, DropHeader []string
	// AlsoPass are names, and beginnings of names that end in a star, of headers that are passed besides.
	AlsoPass []string
	// Secrets sign each delivery as Standard Webhooks describe it, with a signature per secret so that
	// they can be rotated. One that begins with whsec_ is base64 after that; others are taken byte for
	// byte. None: deliveries are not signed.
	Secrets []string
	// HTTPKeys sign each delivery with HTTP message signatures (RFC 9421), one for each, at most [outgoing.MaxHTTPKeys].
	HTTPKeys []outgoing.HTTPKey
	// AppURL is the address at which the application believes to be called, which HTTPKeys sign. Empty: URL.
	AppURL string
	// Signers make the provider's signatures anew, by the name of the source: for applications that verify them. The
	// headers that they need are passed on whatever PassHeader and DropHeader say.
	Signers map[string]Signer
	// TLS has the certificates and names to use for https. Nil: those of the system.
	TLS *tls.Config
	// Stale says what becomes of an event of which a newer version was delivered. Needed.
	Stale StalePolicy
	// Policy says which addresses may be connected to. The zero policy allows all.
	Policy AddressPolicy
	// Breaker keeps attempts from a destination that fails again and again. The zero one never does.
	Breaker Breaker
}

// validate looks at what a configuration may get wrong besides texts.
func (s *Destination) validate() error {
	switch {
	case s.Timeout <= 0 || s.Concurrency < 1 || s.Schedule.Attempts < 1:
		return errors.New("timeout, concurrency and attempts must be more than 0")
	case s.GiveUp < 0 || !(s.Rate >= 0) || math.IsInf(s.Rate, 1):
		return errors.New("give-up time and rate must be numbers, and not negative")
	}
	for _, status := range s.Permanent {
		if err := retry.CheckPermanent(status); err != nil {
			return err
		}
	}
	if policies := []StalePolicy{StaleFlag, StaleDeliver, StaleDrop}; !slices.Contains(policies, s.Stale) {
		return fmt.Errorf("unknown policy %q about stale events: write flag, deliver or drop", s.Stale)
	}
	return nil
}

// StalePolicy says what becomes of an event of which a newer version was delivered to the destination
// already. Events that were replayed by force are delivered in any case.
type StalePolicy string

// The policies about stale events.
const (
	StaleFlag    StalePolicy = "flag"    // deliver it with Hookonce-Stale: true
	StaleDeliver StalePolicy = "deliver" // deliver it like any other
	StaleDrop    StalePolicy = "drop"    // do not deliver it; it is done, and its record says why
)

// Signer signs an event the way its provider does. It is safe for concurrent use.
type Signer interface {
	// Sign replaces what the provider's signature is in, at req.Now: headers, and where they have a part of it the
	// URL and the body, of which it makes new ones. Vouched is that of [journal.Work]: where it is zero nothing is
	// signed. With an error the request stays as it was.
	Sign(req *hookonce.Request, vouched int16) error
	// Carries reports whether a header of that canonical name has a part of the signature, or is signed.
	Carries(name string) bool
}

// Breaker says when a destination is taken for ill, and how often it is tried while it is.
//
// Ill is a destination that cannot be connected to, does not answer in time or with nothing valid, or answers
// 429, 502, 503 or 504: Failures times in a row, or three times in a row over five seconds or more, where
// each event counts once unless nobody is there. So is one that took nothing for half a minute although at least
// Failures events were tried. Any other failure says something about one event.
//
// An ill destination gets a probe after each pause. What fails meanwhile is on record and costs no try. With the
// first success it recovers, and gets twice as much at once after each round of successes, up to its
// concurrency.
type Breaker struct {
	// Failures in a row make it ill. Zero: it never is, and nothing below applies.
	Failures int
	// Pause is the time from the first failed probe to the next, and doubles up to PauseMax. Zero means
	// a second and four, or the first and the last delay of the destination's schedule where
	// they are shorter: who wants retries soon does not want to wait for probes.
	Pause, PauseMax time.Duration
}

// fit returns the breaker with the pauses that it has with a schedule.
func (b Breaker) fit(schedule retry.Schedule) (Breaker, error) {
	first, last, retries := schedule.Ends()
	if b.Pause == 0 {
		b.Pause = usualPause
		if retries {
			b.Pause = max(shortestPause, min(b.Pause, first))
		}
		if b.PauseMax > 0 {
			b.Pause = min(b.Pause, b.PauseMax)
		}
	}
	if b.PauseMax == 0 {
		b.PauseMax = usualPauseMax
		if retries {
			b.PauseMax = min(b.PauseMax, last)
		}
		b.PauseMax = max(b.Pause, b.PauseMax)
	}
	if b.Failures < 0 || b.Pause < 0 || b.PauseMax < b.Pause {
		return b, fmt.Errorf("the breaker's failures, %d, are negative, or its first pause, %v, is negative or longer than its longest, %v", b.Failures, b.Pause, b.PauseMax)
	}
	return b, nil
}

const (
	// usualPause and usualPauseMax are those of a breaker that has no pauses of its own.
	usualPause, usualPauseMax = time.Second, 4 * time.Second
	// shortestPause is the least that a short schedule makes of them, and the first pause after a probe that was
	// answered, though not with a success.
	shortestPause = 100 * time.Millisecond
)
