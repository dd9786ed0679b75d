package ingest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
)

// serviceGate serves the source "billing" and the service "charges", which answers with what it sees.
func serviceGate(t *testing.T, change func(*ingest.Options, *ingest.Service)) *gate {
	return newGate(t, func(o *ingest.Options) {
		o.Sources = o.Sources[:1]
		s := ingest.Service{Name: "charges", MaxBody: 1000, MaxAnswer: 1000, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %q", r.Method, r.URL.EscapedPath())
		})}
		if change != nil {
			change(o, &s)
		}
		o.Services = []ingest.Service{s}
	})
}

// A service gets everything below its path, with any method, and nothing else.
func TestServicePaths(t *testing.T) {
	g := serviceGate(t, nil)
	for target, want := range map[string]string{
		"/in/charges":         `""`,
		"/in/charges/":        `"/"`,
		"/in/charges/a/b":     `"/a/b"`,
		"/in/charges//a%2Fb/": `"//a%2Fb/"`,
		"/in/charges/billing": `"/billing"`,
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if w := serve(g, httptest.NewRequest(method, target, nil)); w.Body.String() != method+" "+want {
				t.Errorf("%s %s was answered %d %s", method, target, w.Code, w.Body)
			}
		}
	}
	for _, target := range []string{"/in/charges2", "/in/charge", "/charges", "/in//charges", "/in/other/charges", "/IN/charges"} {
		w := serve(g, httptest.NewRequest("POST", target, nil))
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusNotFound, "unknown_source")
	}
	if w := g.send("billing", `{"id":"a"}`); w.Code != http.StatusOK {
		t.Errorf("the source beside it answered %d %s", w.Code, w.Body)
	}
}

func TestServiceAdmits(t *testing.T) {
	g := serviceGate(t, func(o *ingest.Options, s *ingest.Service) {
		s.Allow, s.Rate, s.Burst = networks("192.0.2.0/24"), 0.001, 1
	})
	from := func(address string) *http.Request {
		r := httptest.NewRequest("POST", "/in/charges", nil)
		r.RemoteAddr = address
		return r
	}
	w := serve(g, from("198.51.100.7:4000"))
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "address")
	if w := serve(g, from("192.0.2.7:4000")); w.Code != http.StatusOK {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	w = serve(g, from("192.0.2.7:4000"))
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "rate")
}

// Room for the whole answer is taken when the body of a request is complete and before the service is asked, and given back
// after. One address leaves some to others, and what the service does not keep needs none.
func TestServiceRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		fit  int // requests of one address: two bytes and 1000 each, and 2002 for a moment; together half of what there is
	}{{"small", "10", 48}, {"empty, of unknown length", "", 50}} {
		t.Run(c.name, func(t *testing.T) {
			begun, finish := make(chan struct{}), make(chan struct{})
			g := serviceGate(t, func(o *ingest.Options, s *ingest.Service) {
				o.MaxReading, o.Sources = 100_000, nil
				s.Keeps = func(r *http.Request) bool { return r.Method == "POST" }
				s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						_, again := hookonce.RetryDelay(err)
						w.WriteHeader(map[bool]int{true: 503, false: 400}[again])
						return
					}
					if r.Method == "POST" {
						begun <- struct{}{}
						<-finish
					}
				})
			})
			post := func(from string) *http.Request {
				r := httptest.NewRequest("POST", "/in/charges", strings.NewReader(c.body))
				r.RemoteAddr = from
				if c.body == "" {
					r.ContentLength = -1
				}
				return r
			}
			const one, other = "[2001:db8::1]:4000", "[2001:db8:0:1::1]:4000"
			answers := make(chan int)
			ask := func(from string) {
				go func() { answers <- serve(g, post(from)).Code }()
				select {
				case <-begun:
				case code := <-answers:
					t.Fatalf("%s was answered %d", from, code)
				}
			}
			for range c.fit {
				ask(one)
			}
			if w := serve(g, post("[2001:db8::ffff]:4000")); w.Code != 503 {
				t.Fatalf("one more of the same /64 was answered %d", w.Code)
			}
			if got := gather(t, g, "hookonce_rejected_total")["crowded,charges"]; got != 1 {
				t.Errorf("%v refused, want 1", got)
			}
			if last, _ := g.Refusals().Of("charges"); len(last) != 1 || last[0].Reason != "crowded" || last[0].Status != http.StatusServiceUnavailable {
				t.Errorf("remembered is %+v", last)
			}
			ask(other)
			if w := serve(g, httptest.NewRequest("GET", "/in/charges", nil)); w.Code != http.StatusOK {
				t.Errorf("a GET, which is handed through, was answered %d", w.Code)
			}
			close(finish)
			for range c.fit + 1 {
				if code := <-answers; code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			}
			ask(one)
			<-answers
		})
	}
}
