// Package incoming is what the verification of every sender has in common: reading what a request says once, and saying
// why it is refused.
package incoming

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/hookonce/hookonce"
)

// Reject returns the error of a request that is not authentic, for one of the reasons of package hookonce. The text must
// hold no secret, and no signature that was expected.
func Reject(reason, format string, args ...any) error {
	return &hookonce.RejectError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Absent is Reject for a request that lacks a header.
func Absent(reason, header, format string, args ...any) error {
	return &hookonce.RejectError{Reason: reason, Header: header, Detail: fmt.Sprintf(format, args...)}
}

// Single returns the one value that all of values are, and how many different ones there are: 0, 1 or 2 for more. Of
// several the text is empty, because there is no telling which one is meant.
func Single(values []string) (text string, different int) {
	if len(values) == 0 {
		return "", 0
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return "", 2
		}
	}
	return values[0], 1
}

// Required returns the one value of the header of that name, on which a signature depends. An error says that it is absent,
// or there with several values, and what is expected in the shape of it.
func Required(h http.Header, name, shape string) (string, error) {
	text, n := Single(h[http.CanonicalHeaderKey(name)])
	switch {
	case n > 1:
		return "", Reject(hookonce.ReasonSignatureMalformed, "the header %s occurs several times with different values; expected one: %s", name, shape)
	case text == "":
		return "", Absent(hookonce.ReasonSignatureMissing, name, "the header %s is absent; expected %s", name, shape)
	}
	return text, nil
}

// IsForm reports whether the header says that the body is a form, once.
func IsForm(h http.Header) bool {
	contentType, _ := Single(h["Content-Type"])
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// Form returns the fields of a request whose body is a form, and whether it is one.
func Form(req *hookonce.Request) (url.Values, bool) {
	if !IsForm(req.Header) {
		return nil, false
	}
	form, err := url.ParseQuery(string(req.Body))
	return form, err == nil
}
