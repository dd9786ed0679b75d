package remotekeys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	fetchTimeout = 5 * time.Second
	fetchSize    = 64 << 10 // bytes of an answer
)

// NewClient returns a client over that transport which goes to the host it was sent to and nowhere else.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// StatusError is an answer with another status than 200.
type StatusError struct {
	host   string
	Status int
}

// Error names the host and the status, and nothing of what was asked.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.host, e.Status, http.StatusText(e.Status))
}

// outage is a failure that says nothing about what was asked for: another try may succeed.
type outage struct{ error }

func (o outage) Unwrap() error { return o.error }

// Outage returns the error as one that says nothing about the key that was asked for: it is asked for again soon, and one
// that was good stays so.
func Outage(err error) error { return outage{err} }

// gone reports whether the answer was that there is no such thing.
func gone(err error) bool {
	var passing outage
	if errors.As(err, &passing) { // of something else, such as a token
		return false
	}
	var e *StatusError
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// Fetch returns the body of a successful answer of at most fetchSize bytes. Its errors contain
// neither the request's header nor its body, which may hold secrets.
func Fetch(ctx context.Context, client *http.Client, method, address string, header http.Header, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	answer, err := client.Do(req)
	if err != nil {
		return nil, outage{err}
	}
	defer answer.Body.Close()
	switch s := answer.StatusCode; {
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s >= 500:
		return nil, outage{&StatusError{req.URL.Host, s}}
	case s != http.StatusOK:
		return nil, &StatusError{req.URL.Host, s}
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, fetchSize+1))
	switch {
	case err != nil:
		return nil, outage{err}
	case len(text) > fetchSize:
		return nil, fmt.Errorf("%s answers with more than %d bytes", req.URL.Host, fetchSize)
	}
	return text, nil
}
