package hookonce

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// readBody returns the raw body of at most maxBody bytes, or the refusal to answer with. A reader whose error is marked
// with [RetryAfter] has the request come again. It is our fault, and no
// sender can mend it, that a middleware has taken something of the body: neither a signature nor a fingerprint
// would cover what the sender said.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	tooLarge := &problem{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: fmt.Sprintf("the body is larger than %d bytes", s.maxBody)}
	if r.ContentLength > s.maxBody {
		return nil, tooLarge
	}
	empty := drained(r.Body)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.maxBody))
	var exceeded *http.MaxBytesError
	delay, later := RetryDelay(err)
	switch {
	case later: // who is in front refuses the rest for now
		return nil, unavailable("the request is not taken now; send it again", cmp.Or(max(delay, 0), defaultRetry))
	case errors.As(err, &exceeded):
		return nil, tooLarge
	case errors.Is(err, http.ErrBodyReadAfterClose), err == nil && (empty && r.ContentLength < 0 || !whole(r, body)):
		s.log.ErrorContext(r.Context(), "a middleware has read, parsed, closed, cut or replaced the body of a request before it came to the handler: put the handler in front of that middleware, or have it set r.Body to the whole body again; one that replaces the body by another, which is shorter, sets r.ContentLength to the new length, or to -1",
			"source", s.source, "declared", r.ContentLength, "arrived", len(body))
		return nil, unavailable("the request could not be read", defaultRetry)
	case err != nil:
		return nil, &problem{Status: http.StatusBadRequest, Type: "body-incomplete", Detail: "the body ended before it was complete"}
	}
	return body, nil
}

// whole reports whether a body that was read to its end is all of it, as far as can be told: by its length, or,
// if none was declared, because a limit was reached or a form was parsed from it. A middleware that decompresses
// often leaves the length of what was sent behind, so what a decompressor returns may be shorter. Anything else that
// is shorter may be the beginning of what was sent: neither a header nor a reader in memory tells.
func whole(r *http.Request, body []byte) bool {
	from, cut := origin(r.Body)
	switch {
	case len(body) == 0:
		return r.ContentLength == 0 || r.ContentLength < 0 && r.PostForm == nil
	case r.ContentLength < 0:
		return !cut && (len(r.PostForm) == 0 && r.MultipartForm == nil || !isOf(from, servers))
	}
	return int64(len(body)) >= r.ContentLength || !cut && isOf(from, decompressors)
}

// The packages whose readers return what the client sent as it is, and those whose readers decompress it.
var (
	servers       = []string{"net/http", "golang.org/x/net/http2"}
	decompressors = []string{"compress", "github.com/klauspost/compress", "github.com/klauspost/pgzip", "github.com/andybalholm/brotli"}
)

// isOf reports whether the type of v is of one of the packages, or of one below it.
func isOf(v reflect.Value, packages []string) bool {
	return v.IsValid() && slices.ContainsFunc(packages, func(name string) bool {
		pkg := v.Type().PkgPath()
		return pkg == name || strings.HasPrefix(pkg, name+"/")
	})
}

// origin returns what r reads from, looking through the readers that package io makes and through struct literals
// of readers and closers, and whether a limit between the two was reached. It is invalid if there is nothing.
func origin(r io.Reader) (from reflect.Value, cut bool) {
	for {
		if limit, ok := r.(*io.LimitedReader); ok {
			r, cut = limit.R, cut || limit.N <= 0
			continue
		}
		v := reflect.Indirect(reflect.ValueOf(r))
		if !v.IsValid() || v.Kind() != reflect.Struct || v.Type().Name() != "" && v.Type().PkgPath() != "io" {
			return v, cut
		}
		field, ok := v.Type().FieldByName("Reader")
		if !ok || !field.IsExported() || len(field.Index) != 1 {
			return v, cut
		}
		inner, ok := v.FieldByIndex(field.Index).Interface().(io.Reader)
		if !ok {
			return v, cut
		}
		r = inner
	}
}

// drained reports whether r is the server's own reader and was read to its end before. For a body without a length
// nothing else tells that from an empty one; net/http knows, and has no method that says so. Where its fields have
// other names, the answer is no.
func drained(r io.Reader) bool {
	v, _ := origin(r)
	for isOf(v, servers) && v.Kind() == reflect.Struct {
		if end := v.FieldByName("sawEOF"); end.IsValid() && end.Kind() == reflect.Bool {
			return end.Bool()
		}
		inner := v.FieldByName("r") // a limit of http.MaxBytesReader
		if !inner.IsValid() {
			inner = v.FieldByName("readCloser") // a client that waits for 100 Continue
		}
		v = follow(inner)
	}
	return false
}

// follow returns what v points to or holds; invalid if that is nothing.
func follow(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	return v
}
