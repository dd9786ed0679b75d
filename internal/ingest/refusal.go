package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tally"
)

// refusal is a problem as the sender reads it. What the log says is elsewhere: a sender that is not verified learns
// nothing that helps it to become so. Its Reason is the label of the metric, and its RetryAfter is set where a sender should
// come back with the same request.
type refusal struct{ problem.Details }

func newRefusal(typ *problem.Type, reason, detail string) *refusal {
	p := &refusal{*typ.New(detail)}
	p.Reason = reason
	return p
}

// after asks the sender to come again then.
func (p *refusal) after(d time.Duration) *refusal {
	p.RetryAfter = d
	return p
}

// closing ends the connection: the rest of the request is not read.
func (p *refusal) closing() *refusal {
	p.Close = true
	return p
}

func (p *refusal) Error() string { return p.Reason }

// ours reports whether the failure is our own. The status does not tell: it is what the provider retries.
func (p *refusal) ours() bool {
	return p.Type == problem.Unavailable && p.Reason != errUndecided.Reason && p.Reason != errCrowded.Reason
}

// The sender's mistakes.
var (
	errUnknownSource = newRefusal(problem.UnknownSource, "unknown_source", "No source is configured under this path; the path of a source is /in/<name>.")
	errMethod        = newRefusal(problem.MethodNotAllowed, hookonce.ReasonMethod, "Events are sent with POST.")
	errTooLarge      = newRefusal(problem.BodyTooLarge, hookonce.ReasonTooLarge, "The body is larger than this source accepts.").closing()
	errHeaders       = newRefusal(problem.HeadersTooLarge, "headers_too_large", "The headers that the application needs are together larger than 8 KiB, or more than 64 lines. Nothing is stored.")
	errTruncated     = newRefusal(problem.BodyTruncated, hookonce.ReasonTruncated, "The body ended early or was not framed as HTTP asks.").closing()
	errSlow          = newRefusal(problem.BodyTooSlow, hookonce.ReasonSlow, "The body did not arrive in time.").closing()
)

// What is authentic, but not taken now. It is no mistake of the provider's, and so it is answered with a
// status that the provider retries: a list of addresses may be out of date, and a rate too low.
var (
	errTooMany    = newRefusal(problem.TooManyRequests, "rate", "This source takes fewer requests per second. Nothing is acknowledged: send it again.").after(time.Second)
	errNotAllowed = newRefusal(problem.AddressNotAllowed, "address", "This source takes no requests from this address now.").after(time.Minute).closing()
)

// What is answered as our own failures are, since it may be the sender who is refused, and counted apart from them, since a
// stranger can cause it: he names a key that nobody has, or sends bodies that never end, for which those of others have to go.
var (
	errUndecided = unavailable(hookonce.ReasonUndecided, "It cannot be told now whether the request is authentic.")
	errCrowded   = unavailable("crowded", "More is being received than memory is set aside for.").closing()
)

// Our own failures: the sender is asked to come again, never told that it did something wrong.
var (
	errFull        = unavailable("queue_full", "More events are waiting to be stored than memory is set aside for.")
	errClosed      = unavailable("closing", "The gateway is shutting down.")
	errStore       = unavailable("store", "The event could not be stored.")
	errTimeout     = unavailable("timeout", "It is not known in time whether the event is stored.")
	errRowRefused  = unavailable("row_refused", "At least one event of this request could not be stored.")
	errLoop        = unavailable("loop", "This is a delivery of this gateway's own: a destination leads back to it.")
	errUnanswered  = unavailable("unanswered", "The application has not answered in time, or could not handle the event. It is stored, and the answer to it may come later.")
	errCellAway    = unavailable("cell_away", "The part of this service that the event belongs to does not answer.")
	errCellRefused = unavailable("cell_refused", "The part of this service that the event belongs to could not take it.")
	errCellMap     = unavailable("cell_map", "It is not settled at this moment where the event belongs.")
	errPanic       = unavailable("panic", "The request could not be handled.")
	errUnspecified = unavailable("internal", "The request could not be handled.")
)

// panicError is what something panicked with, and where.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v: %v", errPanic, e.value) }

// Unwrap says what is answered.
func (e *panicError) Unwrap() error { return errPanic }

// retryAfter is the Retry-After of our own failures. Providers that honour it would otherwise wait for minutes; most
// outages of a queue or a store are shorter.
const retryAfter = 5 * time.Second

func unavailable(reason, detail string) *refusal {
	return newRefusal(problem.Unavailable, reason, detail+" Nothing is acknowledged: send it again.").after(retryAfter)
}

// rejections are the answers to requests that are not verified, by reason. They differ in the reason
// alone, which names what the sender already knows.
var rejections = map[string]*refusal{
	hookonce.ReasonSignatureMissing:   unverified(hookonce.ReasonSignatureMissing, "The request carries no signature."),
	hookonce.ReasonSignatureMalformed: unverified(hookonce.ReasonSignatureMalformed, "The signature is not in the form that this source expects."),
	hookonce.ReasonSignatureMismatch:  unverified(hookonce.ReasonSignatureMismatch, "The signature does not belong to this body and this source."),
	hookonce.ReasonTimestampMissing:   unverified(hookonce.ReasonTimestampMissing, "The signed timestamp is missing or not a number."),
	hookonce.ReasonTimestampOld:       unverified(hookonce.ReasonTimestampOld, "The signed timestamp is too old."),
	hookonce.ReasonHandshakeRefused:   unverified(hookonce.ReasonHandshakeRefused, "This is not a challenge that is answered here."),
	hookonce.ReasonTimestampFuture:    unverified(hookonce.ReasonTimestampFuture, "The signed timestamp is in the future."),
}

// errUnverified answers for a reason that is not in the closed set.
var errUnverified = unverified("unverified", "The request could not be verified.")

func unverified(reason, detail string) *refusal {
	return newRefusal(problem.Unverified, reason, detail)
}

// allRefusals lists every refusal of a source, so that each has its counter before it first happens.
func allRefusals() []*refusal {
	all := []*refusal{errMethod, errTooLarge, errHeaders, errTruncated, errSlow, errTooMany, errNotAllowed, errUndecided, errCrowded,
		errFull, errClosed, errStore, errTimeout, errRowRefused, errLoop, errUnanswered, errCellAway, errCellRefused, errCellMap, errPanic, errUnspecified, errUnverified}
	for _, p := range rejections {
		all = append(all, p)
	}
	return all
}

// busyThere are the answers where another cell could not take a request, by its reason: those that it would have given itself.
var busyThere = func() map[string]*refusal {
	all := map[string]*refusal{}
	for _, p := range allRefusals() {
		if slices.Contains(cells.Busy, p.Reason) {
			all[p.Reason] = p
		}
	}
	return all
}()

// refusalOf is the one place that turns an error into an answer. What it does not know is our fault.
func refusalOf(err error) *refusal {
	var p *refusal
	var reject *hookonce.RejectError
	var handed *cells.RefusedError
	switch {
	case errors.Is(err, journal.ErrCellMap), errors.Is(err, cells.ErrMaps), errors.Is(err, cells.ErrNoMap), errors.Is(err, cells.ErrConflict):
		return errCellMap
	case errors.As(err, &p):
		return p
	case errors.As(err, &reject):
		if p, ok := rejections[reject.Reason]; ok {
			return p
		}
		return errUnverified
	case errors.Is(err, body.ErrTooLarge):
		return errTooLarge
	case errors.Is(err, body.ErrSlow):
		return errSlow
	case errors.Is(err, body.ErrTruncated):
		return errTruncated
	case errors.Is(err, body.ErrNoMemory):
		return errCrowded
	case errors.Is(err, journal.ErrFull):
		return errFull
	case errors.Is(err, journal.ErrClosed):
		return errClosed
	case errors.As(err, &handed) && busyThere[handed.Reason] != nil:
		return busyThere[handed.Reason]
	case errors.Is(err, cells.ErrAway):
		return errCellAway
	case errors.Is(err, cells.ErrRefused), errors.Is(err, cells.ErrDisagree):
		return errCellRefused
	case errors.Is(err, journal.ErrUnavailable):
		return errStore
	case errors.Is(err, hookonce.ErrUnknownOutcome), errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	}
	return errUnspecified
}

// refuser answers the requests to one source that are not acknowledged.
type refuser struct {
	now       func() time.Time
	source    string
	log       eventLog
	watcher   Watcher
	refusals  *refusals.Log
	allowlist allowlist
	rejected  map[*refusal]counter
	profile   hookonce.Profile
	allow     string // the methods that are taken
}

// newRefuser returns the refuser of a source that can have the given refusals.
func newRefuser(source string, o Options, m *metrics, log *refusals.Log, profile hookonce.Profile, from allowlist, all ...*refusal) refuser {
	r := refuser{
		now:       o.Now,
		source:    source,
		log:       newEventLog(o.Logger, source),
		watcher:   o.Watcher,
		refusals:  log,
		allowlist: from,
		rejected:  make(map[*refusal]counter, len(all)),
		profile:   profile,
		allow:     profile.Allow(),
	}
	for _, p := range all {
		r.rejected[p] = counter{m.rejected.WithLabelValues(source, p.Reason), m.tally.Counter(source, "", tally.Rejected(p.Reason))}
	}
	return r
}

// glimpse is what was seen of a request before it was refused.
type glimpse struct {
	body refusals.Body
	key  string // see [refusals.Refusal]
}

// refuse answers with the problem that err stands for. Every refusal of a webhook passes here, and here alone its
// status is decided: that of the problem's type ([problem.Type]; 503 where the failure is ours), unless the provider
// needs another one to send again, which its profile says ([hookonce.Profile]). One after which
// senders come again always has a Retry-After ([problem.Details.As]). seen is what is known of the
// body. It returns the status, when a sender that is hung up on has had time to read that.
func (r refuser) refuse(w http.ResponseWriter, req *http.Request, seen glimpse, err error) int {
	own := r.note(req, seen, err)
	if own.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", r.allow)
	}
	own.Write(w)
	if own.Close {
		body.Linger(w, req)
	}
	return own.Status
}

// note records a refusal, and returns what the sender is answered.
func (r refuser) note(req *http.Request, seen glimpse, err error) *refusal {
	p := refusalOf(err)
	r.rejected[p].Inc()
	own := &refusal{p.As(r.profile.Refusal(p.Status, err), retryAfter)}
	var early *tooFast
	if errors.As(err, &early) {
		own.RetryAfter = early.wait
	}
	what := refusals.Refusal{
		At: r.now(), Source: r.source, Address: r.allowlist.from(req), Method: req.Method, Path: shownPath(req), Status: own.Status,
		Reason: own.Reason, Words: own.Detail, Headers: refusals.Names(req.Header), Body: seen.body, UnverifiedKey: seen.key,
	}
	var reject *hookonce.RejectError
	if errors.As(err, &reject) {
		what.Unverified, what.Words, what.Header = true, reject.Detail, reject.Header
	}
	r.log.rejected(req.Context(), own, what, err)
	r.refusals.Add(what)
	r.watcher.Refused(what)
	return own
}

// maxShownPath bounds in bytes what is shown of a path that a stranger chose.
const maxShownPath = 128

// shownPath returns the first two segments of a request's path, escaped: enough to see which source was
// meant. What comes after them, and in the query, may be a token.
func shownPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	parts := strings.SplitN(path, "/", 4) // the first one is empty
	if len(parts) == 4 && parts[3] != "" {
		path = strings.Join(parts[:3], "/") + "/…"
	}
	if len(path) > maxShownPath {
		path = path[:maxShownPath] + "…"
	}
	return path
}
