package remotekeys

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// transport stands in for the network.
type transport func(*http.Request) (status int, body string)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body := f(req)
	return &http.Response{
		StatusCode: status, Request: req,
		Header: http.Header{"Location": {"https://elsewhere.example/"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func TestFetchRefuses(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
	}{
		"a redirect":       {http.StatusFound, ""},
		"an error":         {http.StatusNotFound, "no"},
		"too long a body":  {http.StatusOK, strings.Repeat("x", fetchSize+1)},
		"an empty success": {http.StatusNoContent, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			client := NewClient(transport(func(req *http.Request) (int, string) {
				if asked++; req.URL.Host != "api.paypal.com" {
					return http.StatusOK, "led astray"
				}
				return c.status, c.body
			}))
			if body, err := Fetch(t.Context(), client, http.MethodGet, "https://api.paypal.com/cert", http.Header{}, ""); err == nil {
				t.Errorf("accepted: %d bytes", len(body))
			}
			if asked != 1 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}
