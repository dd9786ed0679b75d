package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/api"
)

// The names of these are part of the audit log; the secrets are made up.
var tokens = []api.Token{
	{Name: "dashboard", Secret: "a-fake-token-for-reading", Role: api.Read},
	{Name: "oncall", Secret: "a-fake-token-for-operators", Role: api.Operator},
}

// Without tokens this machine alone is answered, and no page of another site that a browser here shows.
func TestWithoutTokens(t *testing.T) {
	tests := map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"a program":                  {func(*http.Request) {}, 200},
		"a program that says a name": {func(r *http.Request) { r.Host = "localhost:8081" }, 200},
		"IPv6":                       {func(r *http.Request) { r.Host, r.RemoteAddr = "[::1]:8081", "[::1]:50000" }, 200},
		"IPv6 without a port":        {func(r *http.Request) { r.Host = "[::1]" }, 200},
		"another loopback address":   {func(r *http.Request) { r.Host, r.RemoteAddr = "127.0.0.2", "127.0.0.9:1" }, 200},
		"our own page": {func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:8081")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}, 200},
		"somebody who types":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		"another machine":              {func(r *http.Request) { r.RemoteAddr = "192.0.2.1:50000" }, 403},
		"no address":                   {func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		"a name that resolves to here": {func(r *http.Request) { r.Host = "evil.example:8081" }, 403},
		"a name that begins like one":  {func(r *http.Request) { r.Host = "127.0.0.1.evil.example:8081" }, 403},
		"localhost of somebody else":   {func(r *http.Request) { r.Host = "localhost.evil.example" }, 403},
		"no host":                      {func(r *http.Request) { r.Host = "" }, 403},
		"a page elsewhere":             {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"a page of another port":       {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:3000") }, 403},
		"a page without an origin":     {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"an image elsewhere":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"through a proxy here":         {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") }, 403},
		"through a proxy with TLS":     {func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }, 403},
		"through a proxy that says so": {func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") }, 403},
		"through a proxy of HTTP/1.0": { // all that nginx 1.22 sends for proxy_pass http://127.0.0.1:8081
			func(r *http.Request) {
				r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
				r.Header.Set("Connection", "close")
			}, 403},
		"a page of a sister site": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
	}
	r := newRig(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			for _, method := range []string{"GET", "POST"} {
				path, body := "/api/v1/stats", any(nil)
				if method == "POST" {
					path, body = "/api/v1/destinations/app/pause", map[string]string{"reason": "test"}
				}
				req := request(method, path, body)
				tt.change(req)
				r.expect(req, tt.want)
			}
		})
	}
}

// With tokens the place does not matter, and nothing is answered without one.
func TestTokens(t *testing.T) {
	tests := map[string]struct {
		authorization string
		read, change  int
	}{
		"none":                        {"", 401, 401},
		"an operator's":               {"Bearer a-fake-token-for-operators", 200, 200},
		"a reader's":                  {"Bearer a-fake-token-for-reading", 200, 403},
		"the scheme in small letters": {"bearer a-fake-token-for-operators", 200, 200},
		"blanks":                      {"Bearer  a-fake-token-for-operators ", 200, 200},
		"unknown":                     {"Bearer a-fake-token-of-nobody-here", 401, 401},
		"a part":                      {"Bearer a-fake-token-for-operator", 401, 401},
		"more":                        {"Bearer a-fake-token-for-operators2", 401, 401},
		"two":                         {"Bearer a-fake-token-for-reading a-fake-token-for-operators", 401, 401},
		"the name":                    {"Bearer oncall", 401, 401},
		"another scheme":              {"Basic a-fake-token-for-operators", 401, 401},
		"no scheme":                   {"a-fake-token-for-operators", 401, 401},
		"empty":                       {"Bearer ", 401, 401},
		"long":                        {"Bearer " + strings.Repeat("a", 60_000), 401, 401},
	}
	r, address := newRig(t, tokens...), 0
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			for _, req := range []struct {
				*http.Request
				want int
			}{
				{request("GET", "/api/v1/stats", nil), tt.read},
				{request("GET", "/api/v1/openapi.json", nil), tt.read},
				{request("POST", "/api/v1/destinations/app/resume", map[string]string{"reason": "test"}), tt.change},
			} {
				address++ // one address has few tries
				req.RemoteAddr, req.Host = fmt.Sprintf("192.0.2.%d:50000", address), "hookonce.internal"
				req.Header.Set("Authorization", tt.authorization)
				w, answer := r.send(req.Request)
				if w.Code != req.want {
					t.Errorf("%s answered %d %v, want %d", req.Method, w.Code, answer, req.want)
				}
				if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (w.Code == 401) {
					t.Errorf("%d with WWW-Authenticate %q", w.Code, challenge)
				}
				if strings.Contains(w.Body.String(), "a-fake-token") {
					t.Errorf("the answer repeats the token: %s", w.Body)
				}
			}
		})
	}
}

// A token in the query would stand in the logs of every proxy.
func TestTokensAreNotReadElsewhere(t *testing.T) {
	r := newRig(t, tokens...)
	req := request("GET", "/api/v1/stats?token=a-fake-token-for-operators&access_token=a-fake-token-for-operators", nil)
	req.AddCookie(&http.Cookie{Name: "token", Value: "a-fake-token-for-operators"})
	r.expect(req, http.StatusUnauthorized)
}

// try asks with a token from an address, and returns the status.
func (r *rig) try(from, token string) int {
	r.Helper()
	req := request("GET", "/api/v1/stats", nil)
	req.RemoteAddr, req.Host = from, "hookonce.internal"
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w, _ := r.send(req)
	if after := w.Header().Get("Retry-After"); (after != "") != (w.Code == http.StatusTooManyRequests) {
		r.Errorf("%d with Retry-After %q", w.Code, after)
	}
	return w.Code
}

// Whoever guesses is answered 429 soon, counted, and in the log without what was guessed. Others are not affected, nor
// is who has the right token, from the same address.
func TestWrongTokens(t *testing.T) {
	r := newRig(t, tokens...)
	const right, wrong = "a-fake-token-for-reading", "a-fake-guess-of-somebody"
	for i := range 1000 {
		want := http.StatusUnauthorized
		if i >= api.MaxWrongTokens {
			want = http.StatusTooManyRequests
		}
		if got := r.try(fmt.Sprintf("192.0.2.1:%d", 1024+i), fmt.Sprint(wrong, i)); got != want {
			t.Fatalf("try %d was answered %d, want %d", i, got, want)
		}
	}
	for from, want := range map[string]int{"192.0.2.1:1": 429, "192.0.2.2:1": 401, "[2001:db8::1]:1": 401} {
		if got := r.try(from, right); got != 200 {
			t.Errorf("the right token from %s is answered %d", from, got)
		}
		if got := r.try(from, wrong); got != want {
			t.Errorf("a wrong token from %s is answered %d, want %d", from, got, want)
		}
		if got := r.try(from, ""); got != 401 {
			t.Errorf("no token from %s is answered %d", from, got)
		}
	}
	for i := range 2 * api.MaxWrongTokens { // all of these are one machine
		r.try(fmt.Sprintf("[2001:db8:0:7::%x]:1", i), wrong)
	}
	if got := r.try("[2001:db8:0:7:ffff::]:1", wrong); got != 429 {
		t.Errorf("another address of the same /64 is answered %d", got)
	}
	r.clock = r.clock.Add(time.Minute)
	if got := r.try("192.0.2.1:1", wrong); got != 401 {
		t.Errorf("a minute later a wrong token is answered %d", got)
	}
	if text := r.log.String(); strings.Contains(text, "guess") || strings.Contains(text, "fake") || !strings.Contains(text, "address=192.0.2.1") || strings.Count(text, "\n") > 200 {
		t.Errorf("the log is %.2000s", text)
	}
	want := `
# HELP hookonce_admin_refused_total Requests to the admin listener whose sender may not make them, by reason.
# TYPE hookonce_admin_refused_total counter
hookonce_admin_refused_total{reason="no_token"} 3
hookonce_admin_refused_total{reason="slowed"} 1002
hookonce_admin_refused_total{reason="wrong_token"} 23
`
	if err := testutil.GatherAndCompare(r.metrics, strings.NewReader(want), "hookonce_admin_refused_total"); err != nil {
		t.Error(err)
	}
}

// Addresses that are made up, as whoever has a network of IPv6 can, cost no memory for long and slow nobody else down.
func TestWrongTokensFromManyAddresses(t *testing.T) {
	r := newRig(t, tokens...)
	for i := range 3 * api.MaxWrongAddresses {
		if got := r.try(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i/1000, i%1000), "a-fake-guess-of-somebody"); got != 401 {
			t.Fatalf("address %d was answered %d", i, got)
		}
	}
	if n := r.guard.Addresses(); n != api.MaxWrongAddresses {
		t.Errorf("%d addresses are remembered", n)
	}
}

// Who shows no token is not verified, and has not tried one.
func TestKnows(t *testing.T) {
	r := newRig(t, tokens...)
	for authorization, want := range map[string]bool{"": false, "Bearer a-fake-token-for-reading": true, "Bearer a-fake-guess": false, "Basic x": false} {
		req := request("GET", "/readyz", nil)
		req.Header.Set("Authorization", authorization)
		if got := r.guard.Knows(req); got != want {
			t.Errorf("%q: %v", authorization, got)
		}
	}
	r.serve()
	req := request("GET", "/readyz", nil)
	if !r.guard.Knows(req) {
		t.Error("without tokens, somebody on this machine is not known")
	}
	if req.Host = "evil.example"; r.guard.Knows(req) {
		t.Error("without tokens, a page elsewhere is known")
	}
}
