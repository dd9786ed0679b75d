package hookonce

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/problem"
)

const (
	defaultRetry = 10 * time.Second // Retry-After when the handler or the store failed
	busyRetry    = 1 * time.Second  // Retry-After when another copy is being handled
)

func unavailable(detail string, retry time.Duration) *problem.Details {
	return &problem.Details{Status: http.StatusServiceUnavailable, Type: "unavailable", Detail: detail, RetryAfter: retry}
}

// unverified tells the sender which part of the scheme failed, never what would have matched. The
// status is the rejection's own, where it has one.
func unverified(err error, status int) *problem.Details {
	p := &problem.Details{Status: status, Type: "unverified", Detail: "the request's signature could not be verified"}
	var reject *RejectError
	if errors.As(err, &reject) {
		p.Reason, p.Status = reject.Reason, cmp.Or(reject.Status, status)
	}
	return p
}

// inert returns the answer to a handshake as text or JSON: it echoes what the sender chose, and no
// browser may take that for a page.
func inert(a Answer) Answer {
	media, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil || media != "application/json" && media != "text/plain" {
		a.ContentType = "text/plain; charset=utf-8"
	}
	if len(a.Body) == 0 {
		a.ContentType = ""
	}
	a.Status = cmp.Or(a.Status, http.StatusOK)
	return a
}

// reply sends a. Browsers are told to believe the content type.
func reply(w http.ResponseWriter, a Answer) {
	h := w.Header()
	if a.ContentType != "" {
		h.Set("Content-Type", a.ContentType)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	w.Write(a.Body) // a sender that hung up does not read it; the outcome stands
}

// readBody returns the raw body of at most maxBody bytes, or the refusal to answer with. A reader whose error is marked
// with [RetryAfter] has the request come again. It is our fault, and no sender can mend it, that a middleware has taken
// something of the body.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Details) {
	raw, err := body.ReadWhole(r, s.maxBody)
	delay, later := RetryDelay(err)
	switch {
	case err == nil:
		return raw, nil
	case later: // the handler in front refuses the rest for now
		return nil, unavailable("the request is not taken now; send it again", cmp.Or(max(delay, 0), defaultRetry))
	case errors.Is(err, body.ErrTooLarge):
		body.HangUp(w)
		return nil, &problem.Details{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: fmt.Sprintf("the body is larger than %d bytes", s.maxBody)}
	case errors.Is(err, body.ErrTouched):
		s.log.ErrorContext(r.Context(), "a middleware has read, parsed, closed, cut or replaced the body of a request before it came to the handler: put the handler in front of that middleware, or have it set r.Body to the whole body again; one that replaces the body by another, which is shorter, sets r.ContentLength to the new length, or to -1",
			"source", s.source, "declared", r.ContentLength, "arrived", len(raw))
		return nil, unavailable("the request could not be read", defaultRetry)
	case errors.Is(err, body.ErrSlow):
		return nil, &problem.Details{Status: http.StatusRequestTimeout, Type: "body-too-slow", Detail: "the body did not arrive in time"}
	}
	return nil, &problem.Details{Status: http.StatusBadRequest, Type: "body-truncated", Detail: "the body ended before it was complete"}
}
