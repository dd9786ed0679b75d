package observe

import (
	"cmp"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// maxEvents is how many events of one request are recorded.
const maxEvents = 1000

// request is one that was answered and waits to be looked at.
type request struct {
	*Forwarder
	hookonce.Request
	came    Observation // what is known without looking
	unread  string      // why it cannot be looked at
	weight  int64       // memory that it holds, in bytes
	further int         // events beyond maxEvents
}

// request returns what is to be looked at, after the last byte of the answer. No body is read any more.
func (e *exchange) request(r *http.Request) *request {
	q := &request{Forwarder: e.Forwarder, Request: hookonce.Request{
		Method: r.Method, URL: e.opt.URL(r), Header: r.Header, Now: e.start, Lazy: true,
		Hurry: true, // others wait to be looked at
	}}
	var broke error
	if e.body != nil {
		q.Body, q.unread, broke = e.body.take(r.ContentLength)
	}
	q.weight = int64(cap(q.Body))
	if size := headerSize(r.Header); e.opt.Recorder.bodies.take(size) {
		q.weight += size
	} else {
		q.Header, q.unread = nil, cmp.Or(q.unread, ReasonMemory)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q.came = Observation{
		Source: e.source.Name, ReceivedAt: e.start, Requests: 1,
		Status: e.status, Failure: e.failure, Took: e.took, Unheard: e.unheard,
	}
	if broke != nil {
		q.came.Unheard = true
		if q.came.Status == 0 {
			q.came.Failure = FailureSender
		}
	}
	return q
}

// headerSize is roughly how much memory a header takes up.
func headerSize(h http.Header) (n int64) {
	for name, values := range h {
		n += int64(len(name)) + 32
		for _, v := range values {
			n += int64(len(v)) + 16
		}
	}
	return n
}

// observations says what the request was. Whatever panics on the way is our fault, and is on record as such.
func (q *request) observations() (all []Observation) {
	defer func() {
		if p := recover(); p != nil {
			q.opt.Logger.Error("observe: a request could not be looked at; it was forwarded", "source", q.source.Name, "panic", p, "stack", string(debug.Stack()))
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

// open verifies the request. One that is rejected for its time alone is opened all the same; late then says why.
func (q *request) open() (d *hookonce.Verified, late string, err error) {
	if q.Method != http.MethodPost {
		q.Body = nil // greetings have none that counts
	}
	d, err = q.source.Provider.Open(&q.Request)
	var rejected *hookonce.RejectError
	if q.source.Timeless == nil || !errors.As(err, &rejected) ||
		rejected.Reason != hookonce.ReasonTimestampOld && rejected.Reason != hookonce.ReasonTimestampFuture {
		return d, "", err
	}
	if d, again := q.source.Timeless.Open(&q.Request); again == nil && d.Handshake == nil {
		return d, rejected.Reason, nil
	}
	return nil, "", err
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

// answeredAt returns when the answer began.
func (o *Observation) answeredAt() time.Time { return o.ReceivedAt.Add(o.Took) }

// done reports whether the application took the event on.
func (o *Observation) done() bool { return o.Status/100 == 2 && o.Failure == "" }
