package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tail"
	"github.com/hookonce/hookonce/internal/tally"
)

// Journal is what the API needs of the engine, which does what operators ask for.
type Journal interface {
	Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error)
	SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error)
	Stats(ctx context.Context) (journal.Stats, error)
}

// Records is what the API reads of the journal's store.
type Records interface {
	journal.Reader
	journal.MissingKeeper
	Marks(ctx context.Context) ([]journal.Mark, error)
	Pauses(ctx context.Context) ([]journal.Pause, error)
	Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error)
	RecordAudit(ctx context.Context, a journal.Audit) error
	Gateways(ctx context.Context) ([]journal.Gateway, error)
	Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error)
}

// Options are the settings of the API.
type Options struct {
	Journal Journal
	Records Records
	// Changed is called after every request that may have changed something, so that what is read next shows it. Nil: it
	// does so anyway.
	Changed func()
	// Sources returns the inbound endpoints of this process as they are at the moment.
	Sources func() []Source
	// Refusals are the requests that this process refused.
	Refusals *refusals.Log
	// Reload has the configuration read anew on somebody's account, and returns what changed. A [Refused] says
	// why nothing did.
	Reload func(ctx context.Context, by string) (changed []string, err error)
	// Compare asks the sender of a source on somebody's account what it made, with the token of the configuration that runs, and
	// acts on what never arrived. The report of what it found, as JSON, is returned with an error, too; a [Refused] says why nothing
	// was asked.
	Compare func(ctx context.Context, by, source string, c Comparison) (report json.RawMessage, err error)
	// Self is this process, as it tells the others on the store of itself. Seen and View are not looked at.
	Self journal.Gateway
	// Overview returns how all stands at the moment, see [overview.Overview.Snapshot].
	Overview func(context.Context) (*overview.Snapshot, error)
	// Rules are how what is wrong is judged. Nil: as the rules are.
	Rules func() alert.Settings
	// Evaluated reports whether alerts are evaluated, recorded and told at the moment. Nil: they are.
	Evaluated func() bool
	// Tail tells events as they come.
	Tail *tail.Feed
	// Payloads says how bodies and headers of events are shown at the moment, to visitors who may look. Nil means [FormOff].
	Payloads func() Form
	// SecretOf returns the number, from 1, of the secret of the source that a fingerprint of an event stands for; 0 if it is
	// not configured any more. Nil: that cannot be told.
	SecretOf func(source string, vouched int16) int
	// Alerts remembers alerts.
	Alerts Alerts
	// Channels returns over what this process tells people, without what waits for them.
	Channels func() []Channel
	// TestChannel sends a test message over a channel, and returns what the receiver said. Its error may be shown.
	TestChannel func(ctx context.Context, name string) (answer string, err error)
	// Targets returns the destinations of this process as they are at the moment, by name.
	Targets func() []fleet.Target
	// Field returns what reads the field with this name, as routes have it, from events of the source. It fails if
	// the name makes no sense there. A source that is not configured has the fields that do not depend on a provider.
	Field func(source, name string) (Reader, error)
	// Version is that of the program, for the OpenAPI document.
	Version string
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
	// Logger receives a line about each change and, at a bounded rate, the failures of the store. Nil discards them.
	Logger *slog.Logger
}

// Reader reads a field of an event from its header and body as they are stored. It returns "" if the event has none.
type Reader func(header, body []byte) string
