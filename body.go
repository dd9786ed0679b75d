package hookonce

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// readBody returns the raw body of at most maxBody bytes, or the refusal to answer with. It is our fault, and no
// sender can mend it, that a middleware has taken something of the body: neither a signature nor a fingerprint
// would cover what the sender said.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	tooLarge := &problem{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: fmt.Sprintf("the body is larger than %d bytes", s.maxBody)}
	if r.ContentLength > s.maxBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.maxBody))
	var exceeded *http.MaxBytesError
	switch {
	case errors.As(err, &exceeded):
		return nil, tooLarge
	case errors.Is(err, http.ErrBodyReadAfterClose), err == nil && !whole(r, body):
		s.log.ErrorContext(r.Context(), "a middleware has read, parsed, closed or cut the body of a request before it came to the handler: put the handler in front of that middleware, or have it set r.Body to the whole body again",
			"source", s.source, "declared", r.ContentLength, "arrived", len(body))
		return nil, unavailable("the request could not be read", defaultRetry)
	case err != nil:
		return nil, &problem{Status: http.StatusBadRequest, Type: "body-incomplete", Detail: "the body ended before it was complete"}
	}
	return body, nil
}

// whole reports whether a body that was read to its end is all of it, as far as can be told: by its length, or,
// if none was declared, because a form was parsed from it. A middleware that decompresses often leaves the length
// of what was sent behind, so a body may be shorter if it does not come from the connection as it is.
func whole(r *http.Request, body []byte) bool {
	switch {
	case len(body) == 0:
		return r.ContentLength == 0 || r.ContentLength < 0 && r.PostForm == nil
	case r.ContentLength < 0:
		return len(r.PostForm) == 0 && r.MultipartForm == nil || !verbatim(r.Body)
	}
	return int64(len(body)) >= r.ContentLength || !verbatim(r.Body)
}

// verbatim reports whether what comes from r is nothing but what the client sent, or a piece of it: r is the
// server's own reader, or one round it that package io makes, or a limit that was reached.
func verbatim(r io.Reader) bool {
	if limit, ok := r.(*io.LimitedReader); ok {
		return limit.N <= 0 || verbatim(limit.R)
	}
	v := reflect.Indirect(reflect.ValueOf(r))
	if !v.IsValid() {
		return false
	}
	pkg := v.Type().PkgPath()
	if inner, ok := v.Type().FieldByName("Reader"); ok && inner.IsExported() && len(inner.Index) == 1 && (v.Type().Name() == "" || pkg == "io") {
		r, ok := v.FieldByIndex(inner.Index).Interface().(io.Reader)
		return ok && verbatim(r) // io.NopCloser, or a struct literal of readers and closers
	}
	return pkg == "net/http" || strings.HasPrefix(pkg, "net/http/") || pkg == "golang.org/x/net/http2"
}
