package api

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

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

var errBusy = errors.New("too many questions at once")

func retryLater(detail string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(detail), http.Header{"Retry-After": {"1"}})
}
