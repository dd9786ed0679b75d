package problem_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/problem"
)

func TestWrite(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		details problem.Details
		body    string
		header  map[string]string // beside those that all have
	}{
		"a status says it all": {
			details: problem.Details{Status: 403, Detail: "the token is not for this"},
			body:    `{"title":"Forbidden","status":403,"detail":"the token is not for this"}`,
		},
		"one that is retried": {
			details: problem.Details{Type: problem.Unavailable, Title: "Temporarily unavailable", Status: 503, Detail: "send it again", Reason: "store", RetryAfter: 1001 * time.Millisecond},
			body:    `{"type":"urn:hookonce:problem:unavailable","title":"Temporarily unavailable","status":503,"detail":"send it again","reason":"store"}`,
			header:  map[string]string{"Retry-After": "2"},
		},
		"one with a page": {
			details: problem.Details{Type: problem.Failed, Status: 500, Instance: "urn:hookonce:occurrence:A", Retryable: &yes, Key: "k1", Documentation: "https://docs.example/#failed", Close: true},
			body:    `{"type":"urn:hookonce:problem:failed","title":"Internal Server Error","status":500,"instance":"urn:hookonce:occurrence:A","retryable":true,"key":"k1","documentation":"https://docs.example/#failed"}`,
			header:  map[string]string{"Link": `<https://docs.example/#failed>; rel="describedby"; type="text/html"`, "Connection": "close"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // writing changes nothing
				w := httptest.NewRecorder()
				c.details.Write(w)
				if w.Code != c.details.Status || w.Body.String() != c.body+"\n" {
					t.Errorf("answered %d %s; want %s", w.Code, w.Body, c.body)
				}
				want := map[string]string{"Content-Type": problem.ContentType, "X-Content-Type-Options": "nosniff", "Retry-After": "", "Link": "", "Connection": ""}
				for k, v := range c.header {
					want[k] = v
				}
				for k, v := range want {
					if w.Header().Get(k) != v {
						t.Errorf("%s: %q; want %q", k, w.Header().Get(k), v)
					}
				}
			}
		})
	}
}

// Whoever comes again after an answer is told when: as the problem says, or else as is usual.
func TestAs(t *testing.T) {
	for _, c := range []struct {
		status    int
		own, want time.Duration
	}{
		{503, 0, 5 * time.Second}, {503, time.Minute, time.Minute}, {500, 0, 5 * time.Second}, {429, 0, 5 * time.Second}, {429, time.Second, time.Second},
		{401, 0, 0}, {413, 0, 0}, {405, 0, 0}, {412, 0, 0}, {498, 0, 0},
	} {
		was := problem.Details{Type: problem.BodyTooLarge, Status: 413, Detail: "too large", RetryAfter: c.own}
		got := was.As(c.status, 5*time.Second)
		if got.Status != c.status || got.RetryAfter != c.want || got.Detail != was.Detail || got.Type != was.Type {
			t.Errorf("%d with %v: %+v", c.status, c.own, got)
		}
		if was.Status != 413 || was.RetryAfter != c.own {
			t.Errorf("%d: what others share was changed: %+v", c.status, was)
		}
	}
}

// A page of the server's own is not lost: Link is cumulative.
func TestWriteAddsItsLink(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Link", "</>; rel=home")
	(&problem.Details{Status: http.StatusGone, Documentation: "https://docs.example"}).Write(w)
	if n := len(w.Header()["Link"]); n != 2 {
		t.Errorf("%d links", n)
	}
}

func TestPage(t *testing.T) {
	for address, want := range map[string]string{
		"": "", "https://docs.example/keys": "https://docs.example/keys#failed", "https://docs.example/keys#all": "https://docs.example/keys#all",
	} {
		if got := problem.Failed.Page(address); got != want {
			t.Errorf("Page(%q) = %q; want %q", address, got, want)
		}
	}
}

func TestOccurrencesDiffer(t *testing.T) {
	a, b := problem.Occurrence(), problem.Occurrence()
	if a == b || !strings.HasPrefix(a, "urn:hookonce:occurrence:") {
		t.Errorf("%q and %q", a, b)
	}
}
