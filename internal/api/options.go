package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/journal"
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
	Pauses(ctx context.Context) ([]journal.Pause, error)
	Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error)
	Gateways(ctx context.Context) ([]journal.Gateway, error)
}

// Options are the settings of the API.
type Options struct {
	Journal Journal
	Records Records
	// Sources returns the inbound endpoints of this process as they are at the moment.
	Sources func() []Source
	// Reload has the configuration read anew on somebody's account, and returns what changed. A [Refused] says
	// why nothing did.
	Reload func(ctx context.Context, by string) (changed []string, err error)
	// Self is this process, as it tells the others on the store of itself. Seen and View are not looked at.
	Self journal.Gateway
	// Targets returns the destinations of this process as they are at the moment, by name.
	Targets func() []Target
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

// Source is an inbound endpoint.
type Source struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Path         string   `json:"path" example:"/in/billing"`
	Destinations []string `json:"destinations" nullable:"false" doc:"Where its events may go."`
}

// Target is a destination of a process, as that finds it. Its JSON form is the [journal.Gateway.View].
type Target struct {
	Name    string
	URL     string // without password
	Ordered bool
	Health  Health
	// Waiting deliveries are held here for their turn, Underway are being made.
	Waiting, Underway int
}

const (
	maxBody     = 64 << 10         // of a request
	readTime    = 10 * time.Second // for one question to the store
	writeTime   = 20 * time.Second // for one change, however many transactions it takes
	maxInFlight = 2                // questions at once, so that asking never takes the store's connections from events
)

// Base is what all paths begin with.
const Base = "/api/v1"

type api struct {
	opt   Options
	turns chan struct{}
}

// answer is an answer with a JSON body.
type answer[T any] struct{ Body T }

// ask runs a question to the store under a deadline, when it is its turn.
func (a *api) ask(ctx context.Context, limit time.Duration, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return a.problem(ctx, errBusy)
	}
	return a.problem(ctx, question(ctx))
}

// Health is how a destination stands: one that is ill only gets probes, and one that recovers gets more and more.
type Health struct {
	State string     `json:"state" enum:"healthy,ill,recovering"`
	Since *time.Time `json:"since,omitempty" doc:"When it was found ill, or began to recover."`
	Error string     `json:"error,omitempty" doc:"Of an ill one: what the last attempt came to."`
	Probe *time.Time `json:"probe,omitempty" doc:"Of an ill one: when it is tried again at the latest."`
	Limit int        `json:"limit" doc:"How many attempts may be under way at once now."`
}

// problem turns an error of the journal into the answer. What the client cannot mend goes to the log,
// and the client learns only that it is our fault.
func (a *api) problem(ctx context.Context, err error) error {
	var answer huma.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return err
	case errors.Is(err, journal.ErrNoEvent):
		return huma.Error404NotFound("there is no such event, or not any more")
	case errors.Is(err, journal.ErrNoReplay):
		return invalid("body.cursor", "this is not the cursor of a replay that you began with this filter", nil)
	case errors.Is(err, errBusy):
		return retryLater("others are asking already; try again in a moment")
	case errors.Is(err, context.DeadlineExceeded):
		return retryLater("the store took too long; narrow the time with since and until, or try again")
	}
	a.opt.Logger.LogAttrs(ctx, slog.LevelError, "api: the store fails", slog.Any("error", err))
	return retryLater("the store fails; the log says more")
}
