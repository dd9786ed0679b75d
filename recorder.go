package hookonce

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// recorder is the ResponseWriter of a handler whose answer goes out after the commit: it keeps the answer
// in memory. It is no [http.Flusher] and no [http.Hijacker], and [http.ResponseController] gets
// [http.ErrNotSupported] from it: nothing can be taken back once it is on the wire. Interim answers (1xx)
// and trailers are left out for the same reason.
type recorder struct {
	header   http.Header
	sent     http.Header // as it was when the status was written
	status   int
	declared int64 // how long the body is to be; negative if the handler did not say
	body     bytes.Buffer
	limit    int
	err      error
}

func newRecorder(limit int) *recorder {
	return &recorder{header: http.Header{}, limit: limit, declared: -1}
}

// errIncomplete says that an answer was cut short, or is not what its header says.
var errIncomplete = errors.New("hookonce: the answer is incomplete")

// Header returns the header of the answer. Changes after WriteHeader have no effect.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, the first time. It panics where the one of net/http does.
func (r *recorder) WriteHeader(status int) {
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

// Write adds to the body. Beyond the limit it returns [ErrResponseTooLarge], and beyond the length that the
// handler declared [http.ErrContentLength]; either way the answer is lost.
func (r *recorder) Write(p []byte) (int, error) {
	if err := r.room(len(p)); err != nil {
		return 0, err
	}
	return r.body.Write(p)
}

// WriteString implements io.StringWriter.
func (r *recorder) WriteString(s string) (int, error) {
	if err := r.room(len(s)); err != nil {
		return 0, err
	}
	return r.body.WriteString(s)
}

// room returns an error unless n bytes more may be written.
func (r *recorder) room(n int) error {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	switch {
	case !hasBody(r.status):
		return http.ErrBodyNotAllowed
	case r.err == nil && n > r.limit-r.body.Len():
		r.err = fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, r.limit)
	case r.err == nil && r.declared >= 0 && int64(n) > r.declared-int64(r.body.Len()):
		r.err = fmt.Errorf("%w: the handler declared a Content-Length of %d and wrote more: %w", errIncomplete, r.declared, http.ErrContentLength)
	}
	return r.err
}

// response returns the answer in the form in which it is sent.
func (r *recorder) response() (*Response, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.err == nil && int64(r.body.Len()) < r.declared {
		r.err = fmt.Errorf("%w: the handler declared a Content-Length of %d and wrote %d bytes", errIncomplete, r.declared, r.body.Len())
	}
	if r.err != nil {
		return nil, r.err
	}
	answer := &Response{Status: r.status, Header: plainHeader(r.sent), Body: r.body.Bytes()}
	if _, typed := r.sent["Content-Type"]; !typed && len(answer.Body) > 0 && r.sent.Get("Content-Encoding") == "" {
		answer.Header.Set("Content-Type", http.DetectContentType(answer.Body))
	}
	if n := size(answer); n > r.limit {
		r.err = fmt.Errorf("%w: %d bytes with its header, at most %d are kept", ErrResponseTooLarge, n, r.limit)
		return nil, r.err
	}
	return answer, nil
}

// hasBody reports whether an answer of that status may have a body.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

func size(r *Response) int {
	n := len(r.Body)
	for name, values := range r.Header {
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
		if framing[name] || !isToken(name) {
			continue
		}
		for _, v := range values {
			plain[name] = append(plain[name], strings.TrimSpace(lineBreaks.Replace(v)))
		}
	}
	return plain
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// isToken reports whether s can be the name of a header field.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// firstOnly are the fields that are for the connection that the first answer went over, or for the one
// who got it.
var firstOnly = map[string]bool{
	"Connection":          true,
	replayedHeader:        true, // said anew of every copy
	"Keep-Alive":          true,
	"Proxy-Authenticate":  true,
	"Proxy-Authorization": true,
	"Proxy-Connection":    true,
	"Set-Cookie":          true,
	"Set-Cookie2":         true,
	"Te":                  true,
	"Upgrade":             true,
}

// again returns the answer as copies get it, which is all that is stored.
func (r *Response) again() *Response {
	kept := *r
	kept.Header = r.Header.Clone()
	for _, line := range r.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			kept.Header.Del(strings.TrimSpace(name))
		}
	}
	for name := range firstOnly {
		delete(kept.Header, name)
	}
	return &kept
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

// write sends the answer. Its fields replace those that w has, or are added to them if they are cumulative.
func (r *Response) write(w http.ResponseWriter) {
	h := w.Header()
	if _, typed := r.Header["Content-Type"]; !typed {
		h["Content-Type"] = nil // not to be guessed now, as it was not then
	}
	for name, values := range r.Header {
		set := h[name]
		if !cumulative[name] {
			set = nil
		}
		added := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(set, v) })
		h[name] = slices.Concat(set, added)
	}
	if hasBody(r.Status) {
		h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	w.WriteHeader(r.Status)
	w.Write(r.Body) // who hung up does not read it; the outcome stands
}
