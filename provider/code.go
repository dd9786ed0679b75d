package provider

import (
	"crypto/hmac"
	"crypto/sha1"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// What the code of the catalogue (spec.Scheme) has in common.

func reject(reason, format string, args ...any) error {
	return &hookonce.RejectError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// requiredHeader returns the one value of a header that a signature depends on.
func requiredHeader(req *hookonce.Request, name, shape string) (string, error) {
	values := req.Header[http.CanonicalHeaderKey(name)]
	if len(values) == 0 || values[0] == "" {
		return "", reject(hookonce.ReasonSignatureMissing, "the header %s is absent; expected %s", name, shape)
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return "", reject(hookonce.ReasonSignatureMalformed, "the header %s occurs several times with different values; expected one: %s", name, shape)
		}
	}
	return values[0], nil
}

// formOf returns the fields of a request whose body is a form, and whether it is one.
func formOf(req *hookonce.Request) (url.Values, bool) {
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, false
	}
	form, err := url.ParseQuery(string(req.Body))
	return form, err == nil
}

// hmacSHA1 is what the older schemes sign with.
func hmacSHA1(key []byte, text string) []byte {
	h := hmac.New(sha1.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// credentials cuts a secret of several parts, joined by colons, into them. The last part may contain
// colons itself.
func credentials(secret string, parts ...string) ([]string, error) {
	found := strings.SplitN(secret, ":", len(parts))
	shape := strings.Join(parts, ":")
	if len(found) != len(parts) {
		return nil, fmt.Errorf("is not %s", shape)
	}
	for i, text := range found {
		if text == "" || strings.TrimSpace(text) != text {
			return nil, fmt.Errorf("is not %s: %s is empty or has white space around it", shape, parts[i])
		}
	}
	return found, nil
}

// signsDocument reports whether a value is in the body, for schemes that sign all of that.
func signsDocument(v spec.Value) bool {
	text := strings.TrimPrefix(string(v), "hash:")
	return strings.HasPrefix(text, "json:") || strings.HasPrefix(text, "const:")
}
