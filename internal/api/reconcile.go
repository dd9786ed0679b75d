package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hookonce/hookonce/internal/loglimit"
)

// Actions on what never arrived.
const (
	CompareReport    = "report"
	CompareRedeliver = "redeliver"
	CompareIngest    = "ingest"
)

// Comparison says which time of a source is compared with its sender's list, and what is done about what never arrived. It has no
// events: those come from the sender alone.
type Comparison struct {
	Since  time.Time  `json:"since" doc:"What was made since then."`
	Until  *time.Time `json:"until,omitempty" doc:"And until then; now if it is missing."`
	Action string     `json:"action,omitempty" enum:"report,redeliver,ingest" default:"report" doc:"Of what never arrived: only tell; have the sender send it again; or store it as the list has it."`
	Really bool       `json:"really,omitempty" doc:"Do so although another source has the same events on record, or the source was observed when they were made."`
}

// ComparisonResult is what was found and done.
type ComparisonResult struct {
	Report json.RawMessage `json:"report" doc:"As hookonce reconcile --json writes it. The first 10000 events of each kind are listed, and all are counted."`
	Error  string          `json:"error,omitempty" doc:"Why it did not come to its end; the report has what was found and done until then. Missing: it did."`
}

type compareInput struct {
	Name string `path:"name" maxLength:"64" doc:"Of a source."`
	Body Comparison
}

// errTooLong ends a comparison that takes too long.
var errTooLong = fmt.Errorf("it took longer than %s and was broken off; compare a part of the time, or ask again: what was recovered is not missing any more", compareTime)

// compareOperation is an operation that may take longer than the listener gives others. A deadline for reading would end it as if
// the client had hung up.
func compareOperation() huma.Operation {
	o := operation(http.MethodPost, "reconcile-source", "/sources/{name}/reconcile", "Ask a source's sender what it made, and recover what never arrived")
	o.Description = "The gateway asks the sender, with the token of its own configuration. One at a time compares a source; who hangs up ends it. It ends after half an hour."
	o.BodyReadTimeout = -1
	o.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(c)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(compareTime + writeTime)) // where there is none there is nothing to lift
		next(c)
	}}
	return o
}

func (a *api) compare(ctx context.Context, in *compareInput) (*answer[ComparisonResult], error) {
	if _, err := a.sourceAt(in.Name); err != nil {
		return nil, err
	}
	if err := a.comparable(&in.Body); err != nil {
		return nil, err
	}
	select {
	case a.compared <- struct{}{}:
		defer func() { <-a.compared }()
	default:
		return nil, retryLater(fmt.Sprintf("%d sources are being compared because somebody asked; try again when one of them is done", maxCompared))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, compareTime, errTooLong)
	defer cancel()
	r, err := a.opt.Compare(ctx, actor(ctx), in.Name, in.Body)
	var refused *Refused
	switch {
	case r != nil:
	case errors.As(err, &refused) && refused.Invalid:
		return nil, huma.Error422UnprocessableEntity(refused.Detail)
	case errors.As(err, &refused):
		return nil, huma.Error409Conflict(refused.Detail)
	default:
		return nil, a.problem(ctx, err)
	}
	out := &answer[ComparisonResult]{ComparisonResult{Report: r}}
	if err != nil {
		out.Body.Error = err.Error()
	}
	loglimit.Unbound(a.opt.Logger).LogAttrs(ctx, slog.LevelInfo, "api: a source was compared with its sender's list", slog.String("source", in.Name), slog.String("action", in.Body.Action),
		slog.String("by", actor(ctx)), slog.String("error", out.Body.Error))
	return out, nil
}

// comparable refuses times that make no sense.
func (a *api) comparable(c *Comparison) error {
	if err := validTime("body.since", c.Since.UTC()); err != nil {
		return err
	}
	if c.Since.After(a.opt.Now()) {
		return invalid("body.since", "it must lie in the past", c.Since)
	}
	if c.Until == nil {
		return nil
	}
	if c.Until.Before(c.Since) {
		return invalid("body.until", "it must not lie before since", *c.Until)
	}
	return validTime("body.until", c.Until.UTC())
}
