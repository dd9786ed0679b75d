// Package recorder keeps the answer of a handler in memory, so that it goes out after what it tells of is durable, and
// sends it, to the first client and to the copies.
package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// Recorder is the ResponseWriter of a handler whose answer goes out after the commit: it keeps the answer
// in memory. It is no [http.Flusher] and no [http.Hijacker], and [http.ResponseController] gets
// [http.ErrNotSupported] from it: nothing can be taken back once it is on the wire. Interim answers (1xx)
// and trailers are left out for the same reason.
type Recorder struct {
	header   http.Header
	sent     http.Header // as it was when the status was written
	status   int
	declared int64 // how long the body is to be; negative if the handler did not say
	body     bytes.Buffer
	limit    int
	err      error
}

// New returns a recorder of an answer of at most limit bytes, body and header together.
func New(limit int) *Recorder {
	return &Recorder{header: http.Header{}, limit: limit, declared: -1}
}

// The errors of an answer that is lost.
var (
	// ErrTooLarge says that a handler wrote a longer answer than is kept.
	ErrTooLarge = errors.New("hookonce: the answer is too large to be kept")
	// ErrIncomplete says that an answer was cut short, or is not what its header says.
	ErrIncomplete = errors.New("hookonce: the answer is incomplete")
)

// Header returns the header of the answer. Changes after WriteHeader have no effect.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, the first time. It panics where the one of net/http does.
func (r *Recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("hookonce: invalid WriteHeader code %d", status))
	}
	if r.status != 0 || status < http.StatusOK {
		return
	}
	r.status, r.sent = status, r.header.Clone()
	if n, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64); err == nil && hasBody(status) {
		r.declared = n
	}
}

// Write adds to the body. Beyond the limit it returns [ErrTooLarge], and beyond the length that the
// handler declared [http.ErrContentLength]; either way the answer is lost.
func (r *Recorder) Write(p []byte) (int, error) {
	if err := r.room(len(p)); err != nil {
		return 0, err
	}
	return r.body.Write(p)
}

// WriteString implements io.StringWriter.
func (r *Recorder) WriteString(s string) (int, error) {
	if err := r.room(len(s)); err != nil {
		return 0, err
	}
	return r.body.WriteString(s)
}

// room returns an error unless n bytes more may be written.
func (r *Recorder) room(n int) error {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	switch {
	case !hasBody(r.status):
		return http.ErrBodyNotAllowed
	case r.err == nil && n > r.limit-r.body.Len():
		r.err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.limit)
	case r.err == nil && r.declared >= 0 && int64(n) > r.declared-int64(r.body.Len()):
		r.err = fmt.Errorf("%w: the handler declared a Content-Length of %d and wrote more: %w", ErrIncomplete, r.declared, http.ErrContentLength)
	}
	return r.err
}

// Status returns the status that was written, or 0 if there was none yet.
func (r *Recorder) Status() int { return r.status }

// Err returns why the answer is lost, as far as that is known while it is written.
func (r *Recorder) Err() error { return r.err }

// Answer is a recorded answer.
type Answer struct {
	Status int
	Header http.Header // under canonical names, without what delimits the message
	Body   []byte
}

// Answer returns the answer in the form in which it is sent, or why it is lost.
func (r *Recorder) Answer() (*Answer, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.err == nil && int64(r.body.Len()) < r.declared {
		r.err = fmt.Errorf("%w: the handler declared a Content-Length of %d and wrote %d bytes", ErrIncomplete, r.declared, r.body.Len())
	}
	if r.err != nil {
		return nil, r.err
	}
	answer := &Answer{Status: r.status, Header: plainHeader(r.sent), Body: r.body.Bytes()}
	if _, typed := r.sent["Content-Type"]; !typed && len(answer.Body) > 0 && r.sent.Get("Content-Encoding") == "" {
		answer.Header.Set("Content-Type", http.DetectContentType(answer.Body))
	}
	if n := size(answer); n > r.limit {
		r.err = fmt.Errorf("%w: %d bytes with its header, at most %d are kept", ErrTooLarge, n, r.limit)
		return nil, r.err
	}
	return answer, nil
}

// hasBody reports whether an answer of that status may have a body.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

func size(a *Answer) int {
	n := len(a.Body)
	for name, values := range a.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// framing says how one message is delimited, which is decided anew whenever it is sent.
var framing = map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Trailer": true}

// plainHeader returns the fields of h that are part of the answer, in the form in which net/http would
// send them: under canonical names, and without line breaks. So what is stored is what was sent.
func plainHeader(h http.Header) http.Header {
	plain := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		if framing[name] || !header.ValidName(name) {
			continue
		}
		for _, v := range values {
			plain[name] = append(plain[name], strings.TrimSpace(lineBreaks.Replace(v)))
		}
	}
	return plain
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// Replayed is the header that marks an answer which an earlier request got first.
const Replayed = "Idempotency-Replayed"

// firstOnly are the fields that are for the client that got the first answer, or are said anew of every copy.
var firstOnly = map[string]bool{"Set-Cookie": true, "Set-Cookie2": true, Replayed: true}

// Repeatable returns the header of an answer as copies get it, which is all that is stored: without what was for one
// client, or for one connection.
func Repeatable(h http.Header) http.Header {
	kept := make(http.Header, len(h))
	for name, values := range h {
		if !firstOnly[name] && !header.HopByHop(name) && !header.ConnectionLists(h, name) {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

// cumulative are the fields of which a response has as many as those who have a part in it add: a middleware in
// front may have set some of them.
var cumulative = map[string]bool{
	"Access-Control-Expose-Headers":       true,
	"Content-Security-Policy":             true, // all of several hold
	"Content-Security-Policy-Report-Only": true,
	"Link":                                true,
	"Server-Timing":                       true,
	"Set-Cookie":                          true,
	"Vary":                                true,
	"Via":                                 true,
	"Warning":                             true,
	"Www-Authenticate":                    true,
}

// Send sends the answer. Its fields replace those that w has, or are added to them if they are cumulative.
func (a *Answer) Send(w http.ResponseWriter) {
	h := w.Header()
	if _, typed := a.Header["Content-Type"]; !typed {
		h["Content-Type"] = nil // not to be guessed now, as it was not then
	}
	for name, values := range a.Header {
		set := h[name]
		if !cumulative[name] {
			set = nil
		}
		added := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(set, v) })
		h[name] = slices.Concat(set, added)
	}
	if hasBody(a.Status) {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // a client that hung up does not read it; the outcome stands
}
