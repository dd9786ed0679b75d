package hookonce

import (
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"
)

const (
	defaultRetry = 10 * time.Second // Retry-After when the handler or the store failed
	busyRetry    = 1 * time.Second  // Retry-After when another copy is being handled
)

// problem is an RFC 9457 problem document.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Instance names this occurrence, in the answer and in the log. It is no secret.
	Instance string `json:"instance,omitempty"`
	// Retryable says whether the same request may be sent again, under the same Key.
	Retryable *bool  `json:"retryable,omitempty"`
	Key       string `json:"key,omitempty"`
	// Documentation is where to read about it, a URL; in a header Link as well.
	Documentation string        `json:"documentation,omitempty"`
	Retry         time.Duration `json:"-"`
}

func unavailable(detail string, retry time.Duration) *problem {
	return &problem{Status: http.StatusServiceUnavailable, Type: "unavailable", Detail: detail, Retry: retry}
}

// unverified tells the sender which part of the scheme failed, never what would have matched. The
// status is the rejection's own, where it has one.
func unverified(err error, status int) *problem {
	p := &problem{Status: status, Type: "unverified", Detail: "the request's signature could not be verified"}
	var reject *RejectError
	if errors.As(err, &reject) {
		p.Reason, p.Status = reject.Reason, cmp.Or(reject.Status, status)
	}
	return p
}

// write sends the problem. Its type is a URN: it identifies, and points nowhere.
func (p *problem) write(w http.ResponseWriter) {
	doc := *p
	doc.Type = "urn:hookonce:problem:" + p.Type
	doc.Title = cmp.Or(p.Title, http.StatusText(p.Status))
	if p.Documentation != "" {
		w.Header().Add("Link", "<"+p.Documentation+`>; rel="describedby"; type="text/html"`)
	}
	if p.Retry > 0 {
		seconds := (p.Retry-1)/time.Second + 1 // rounded up
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	body, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, doc.Title, doc.Status) // cannot happen: the document is strings and numbers
		return
	}
	reply(w, Answer{Status: doc.Status, ContentType: "application/problem+json", Body: body})
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
