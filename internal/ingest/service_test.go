package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

// Room for a request and its answer is set aside before the service sees it, and given back after.
func TestServiceRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		fit  int
	}{{"small", "10", 100_000 / 1002}, {"of unknown length", "", 100_000 / 2000}} {
		t.Run(c.name, func(t *testing.T) {
			begun, finish := make(chan struct{}), make(chan struct{})
			g := serviceGate(t, func(o *ingest.Options, s *ingest.Service) {
				o.MaxReading, o.Sources = 100_000, nil
				s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == "POST" {
						begun <- struct{}{}
						<-finish
					}
				})
			})
			post := func() *http.Request {
				r := httptest.NewRequest("POST", "/in/charges", strings.NewReader(c.body))
				if c.body == "" {
					r.ContentLength = -1
				}
				return r
			}
			answers := make(chan int)
			for range c.fit {
				go func() { answers <- serve(g, post()).Code }()
				<-begun
			}
			w := serve(g, post())
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "queue_full")
			if w := serve(g, httptest.NewRequest("GET", "/in/charges", nil)); w.Code != http.StatusOK {
				t.Errorf("a GET, which is handed through, was answered %d", w.Code)
			}
			close(finish)
			for range c.fit {
				if code := <-answers; code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			}
			go func() { <-begun }()
			if w := serve(g, post()); w.Code != http.StatusOK {
				t.Errorf("answered %d when there was room again", w.Code)
			}
		})
	}
}
