package provider

import (
	"net/http"
	"strings"
	"testing"
)

func TestFetchBodyRefuses(t *testing.T) {
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
			n := &net{serve: func(req *http.Request) (int, string) {
				if req.URL.Host != "api.paypal.com" {
					return http.StatusOK, "led astray"
				}
				return c.status, c.body
			}}
			req, err := http.NewRequest(http.MethodGet, "https://api.paypal.com/cert", nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := fetchBody(n.client(), req); err == nil {
				t.Errorf("accepted: %d bytes", len(body))
			}
			if asked := n.asked.Load(); asked != 1 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}
