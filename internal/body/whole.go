package body

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// ReadWhole is [Read] for a handler that stands behind middlewares which it does not know. It returns [ErrTouched] for
// a body of which one of them has taken something: neither a signature nor a fingerprint would cover what the sender
// said, and no sender can mend it. One that was replaced by a whole one is taken. No body at all is an empty one: that
// of a request that no server received.
func ReadWhole(r *http.Request, limit int64) ([]byte, error) {
	switch {
	case r.ContentLength > limit:
		return nil, ErrTooLarge
	case r.Body == nil && r.ContentLength != 0:
		return nil, ErrTouched
	case r.Body == nil:
		return nil, nil
	}
	empty := drained(r.Body)
	body, err := readUpTo(r.Body, beyond(limit), nil)
	switch {
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return body, ErrTouched
	case err != nil:
		return body, refusal(err)
	case int64(len(body)) > limit:
		return body, ErrTooLarge
	case empty && r.ContentLength < 0, !whole(r, body):
		return body, ErrTouched
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
