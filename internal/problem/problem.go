// Package problem writes the answers that say what is wrong: problem details as RFC 9457 has them, of one form for
// the library and for the gateway.
package problem

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ContentType is the media type of every problem.
const ContentType = "application/problem+json"

// Details is a problem document: see [Type.New]. Details that many requests share may be written at once by many
// goroutines.
type Details struct {
	// Type is the type. Nil: the status says it all ("about:blank").
	Type *Type `json:"type,omitempty"`
	// Title is that of the type. Empty: the text of the status.
	Title string `json:"title"`
	// Status is that of the type, unless the sender understands another.
	Status int `json:"status"`
	// Detail tells the client what happened and what to do. It names no cause that is not the client's.
	Detail string `json:"detail,omitempty"`
	// Reason tells problems of one type apart, in the words of the metrics.
	Reason string `json:"reason,omitempty"`
	// Instance names this occurrence, in the answer and in the log: see [Occurrence]. It is no secret.
	Instance string `json:"instance,omitempty"`
	// Retryable says whether the same request may be sent again, under the same Key. Nil: it is not said.
	Retryable *bool  `json:"retryable,omitempty"`
	Key       string `json:"key,omitempty"`
	// Documentation is the address of a page about the problem, see [Page]. It is in a header Link as well.
	Documentation string `json:"documentation,omitempty"`

	// Unknown says that the request may have been carried out: see [Details.Of].
	Unknown bool `json:"-"`
	// Cause is why, for the log and for observers alone. Nil: the rest says it all.
	Cause error `json:"-"`
	// RetryAfter is the header Retry-After, in seconds and rounded up. Zero or less: there is none.
	RetryAfter time.Duration `json:"-"`
	// Close ends the connection after the answer, where the rest of the request is not worth reading.
	Close bool `json:"-"`
}

// Retried reports whether an answer with that status has senders come again, where any does: one of
// the 500s says that the fault is not theirs, and 429 that it is too early.
func Retried(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }

// As returns the problem with the status that its sender understands. Where that has it come again, and
// the problem does not say when, it is asked to wait for as long as after.
func (d *Details) As(status int, after time.Duration) Details {
	own := *d
	own.Status = status
	if Retried(status) {
		own.RetryAfter = cmp.Or(own.RetryAfter, after)
	}
	return own
}

// Of returns the problem as one occurrence, which says whether the same request may be sent again. It may not if it is
// unknown whether it was carried out, unless it is repeatable: it has no effect, or a key by which a copy is known as one.
func (d *Details) Of(repeatable bool) *Details {
	own := *d
	retryable := d.Type.Retryable()
	if d.Unknown && !repeatable {
		retryable, own.RetryAfter = false, 0
		own.Detail = "it is not known whether the request was carried out, and it has no key by which a copy would be known as one; look before you send it again"
	}
	own.Instance, own.Retryable = Occurrence(), &retryable
	return &own
}

// Write sends the problem as the answer. What else belongs into the header, such as Allow, is set before.
func (d *Details) Write(w http.ResponseWriter) {
	doc := *d
	doc.Title = cmp.Or(d.Title, http.StatusText(d.Status))
	body, err := json.Marshal(&doc)
	if err != nil {
		panic(err) // strings, numbers and truth values always encode
	}
	body = append(body, '\n')
	h := w.Header()
	if d.Documentation != "" {
		h.Add("Link", "<"+d.Documentation+`>; rel="describedby"; type="text/html"`)
	}
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((d.RetryAfter-1)/time.Second+1), 10))
	}
	if d.Close {
		h.Set("Connection", "close")
	}
	h.Set("Content-Type", ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(d.Status)
	_, _ = w.Write(body) // a client that hung up does not read it
}

// Occurrence returns a new name for one occurrence of a problem.
func Occurrence() string { return "urn:hookonce:occurrence:" + rand.Text() }
