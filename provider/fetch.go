package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	fetchTimeout = 5 * time.Second
	fetchSize    = 64 << 10 // bytes of an answer
)

// newFetchClient returns a client that goes to the host it was sent to and nowhere else.
func newFetchClient() *http.Client {
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// statusError is an answer that is no success.
type statusError struct {
	host   string
	status int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.host, e.status, http.StatusText(e.status))
}

// outage is a failure that says nothing about what was asked for: another try may succeed.
type outage struct{ error }

func (o outage) Unwrap() error { return o.error }

// gone reports whether the answer was that there is no such thing.
func gone(err error) bool {
	var passing outage
	if errors.As(err, &passing) { // of something else, such as a token
		return false
	}
	var e *statusError
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone)
}

// fetchBody returns the body of a successful answer of at most fetchSize bytes. Its errors contain
// neither the request's header nor its body, which may hold secrets.
func fetchBody(client *http.Client, req *http.Request) ([]byte, error) {
	answer, err := client.Do(req)
	if err != nil {
		return nil, outage{err}
	}
	defer answer.Body.Close()
	switch s := answer.StatusCode; {
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s >= 500:
		return nil, outage{&statusError{req.URL.Host, s}}
	case s != http.StatusOK:
		return nil, &statusError{req.URL.Host, s}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, fetchSize+1))
	switch {
	case err != nil:
		return nil, outage{err}
	case len(body) > fetchSize:
		return nil, fmt.Errorf("%s answers with more than %d bytes", req.URL.Host, fetchSize)
	}
	return body, nil
}
