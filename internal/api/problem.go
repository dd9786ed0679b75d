package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/problem"
)

func unauthorized(detail string) *problem.Details {
	return &problem.Details{Status: http.StatusUnauthorized, Detail: detail}
}

func forbidden(detail string) *problem.Details {
	return &problem.Details{Status: http.StatusForbidden, Detail: detail}
}

// invalid is the answer to a request one of whose fields, named like query.since, makes no sense.
func invalid(location, message string, value any) error {
	return huma.Error422UnprocessableEntity("validation failed", &huma.ErrorDetail{Location: location, Message: message, Value: value})
}

var errBusy = errors.New("too many queries are under way")

func retryLater(detail string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(detail), http.Header{"Retry-After": {"1"}})
}

// problem turns an error of the journal into the answer. What the client cannot mend goes to the log,
// and the client learns only that it is our fault.
func (a *api) problem(ctx context.Context, err error) error {
	var answer huma.StatusError
	var unknown unknownReplay
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
	case errors.As(err, &unknown):
		a.opt.Logger.LogAttrs(ctx, slog.LevelError, "api: it is not known whether deliveries are replayed", slog.Any("error", err))
		if !unknown.forced {
			return retryLater("it is not known whether anything is delivered again; try again, if it took too long with a narrower time: what has begun is left alone")
		}
		return huma.Error503ServiceUnavailable("it is not known whether anything is delivered again: look at the event, or at the audit log, before you ask once more")
	case errors.Is(err, context.DeadlineExceeded):
		return retryLater("the store took too long; narrow the time with since and until, or try again")
	}
	a.opt.Logger.LogAttrs(ctx, slog.LevelError, "api: the store fails", slog.Any("error", err))
	return retryLater("the store fails; the log says more")
}
