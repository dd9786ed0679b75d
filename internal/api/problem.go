package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Problem is an answer that says what is wrong (RFC 9457).
type Problem struct {
	Status int
	Detail string

	challenge string        // for WWW-Authenticate
	retry     time.Duration // for Retry-After
}

// WriteProblem answers with problem details.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	(&Problem{Status: status, Detail: detail}).write(w)
}

func unauthorized(detail string) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Detail: detail, challenge: `Bearer realm="hookonce"`}
}

func forbidden(detail string) *Problem { return &Problem{Status: http.StatusForbidden, Detail: detail} }

func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(huma.ErrorModel{Title: http.StatusText(p.Status), Status: p.Status, Detail: p.Detail})
	if err != nil { // strings and numbers always have a JSON form
		body = nil
	}
	if p.challenge != "" {
		w.Header().Set("WWW-Authenticate", p.challenge)
	}
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retry.Seconds())))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(body)
}

// invalid is the answer to a request one of whose fields, named like query.since, makes no sense.
func invalid(location, message string, value any) error {
	return huma.Error422UnprocessableEntity("validation failed", &huma.ErrorDetail{Location: location, Message: message, Value: value})
}

var errBusy = errors.New("too many questions at once")

func retryLater(detail string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(detail), http.Header{"Retry-After": {"1"}})
}
