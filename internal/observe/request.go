package observe

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/hookonce/hookonce"
)

// maxEvents is how many events of one request are recorded.
const maxEvents = 1000

// request is one that was answered and waits to be looked at.
type request struct {
	hookonce.Request
	source  *Source
	log     *slog.Logger
	came    Observation // what is known without looking
	unread  string      // why it cannot be looked at
	weight  int64       // memory that it holds, in bytes
	further int         // events beyond maxEvents
}

// observations says what the request was. Whatever panics on the way is our fault, and is on record as such.
func (q *request) observations() (all []Observation) {
	defer func() {
		if p := recover(); p != nil {
			q.log.Error("observe: a request could not be looked at; it was forwarded", "source", q.source.Name, "panic", p, "stack", string(debug.Stack()))
			all = q.is(Unread, ReasonPanic)
		}
	}()
	if q.unread != "" {
		return q.is(Unread, q.unread)
	}
	if !q.taken() {
		return q.is(Refused, ReasonMethod)
	}
	delivery, late, err := q.open()
	var rejected *hookonce.RejectError
	switch {
	case errors.As(err, &rejected):
		return q.is(Refused, rejected.Reason)
	case err != nil:
		return q.is(Unread, ReasonUndecided)
	case delivery.Handshake != nil:
		return q.is(Handshake, "")
	}
	return q.events(delivery, late)
}

// taken reports whether the gateway would look at requests with that method.
func (q *request) taken() bool {
	return q.source.Provider.Profile().Takes(q.Method)
}

// open verifies the request. One that is rejected for its time alone is opened all the same where that
// can be; late then says why.
func (q *request) open() (d *hookonce.Verified, late string, err error) {
	if q.Method != http.MethodPost {
		q.Body = nil // greetings have none that counts
	}
	d, err = q.source.Provider.Open(&q.Request)
	var rejected, besides *hookonce.RejectError
	if q.source.Timeless == nil || !errors.As(err, &rejected) || !untimely(rejected.Reason) {
		return d, "", err
	}
	switch d, again := q.source.Timeless.Open(&q.Request); {
	case again == nil && d.Handshake == nil:
		return d, rejected.Reason, nil
	case errors.As(again, &besides): // a body that was changed, after the time was looked at
		return nil, "", again
	}
	return nil, "", err
}

// untimely reports whether a request is rejected for its time alone: senders' schemes look at it last,
// so that these reasons are given for what is genuine otherwise.
func untimely(reason string) bool {
	return reason == hookonce.ReasonTimestampOld || reason == hookonce.ReasonTimestampFuture
}

// is returns the request as one observation.
func (q *request) is(kind Kind, reason string) []Observation {
	o := q.came
	o.Kind, o.Reason = kind, reason
	return []Observation{o}
}

// events returns an observation for each event. A request without any stands for itself.
func (q *request) events(d *hookonce.Verified, late string) []Observation {
	if d.Len() == 0 {
		return q.is(Notice, late)
	}
	q.further = d.Len() - maxEvents
	all := make([]Observation, 0, min(d.Len(), maxEvents))
	for ev := range d.All() {
		o := q.came
		o.Kind, o.Reason, o.Key, o.Type, o.Digest = Event, late, ev.Key, short(ev.Type), ev.Digest
		if ev.Coalesce {
			o.Kind = Notice
		}
		if len(all) > 0 {
			o.Requests = 0
		}
		if all = append(all, o); len(all) == maxEvents {
			break
		}
	}
	return all
}

// maxType is how much of a type is kept, in bytes.
const maxType = 200

// short makes a text that every database takes.
func short(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s[:min(len(s), maxType)], "\x00", ""), "")
}
