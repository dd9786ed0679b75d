package hookonce_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// What a handler writes before its answer is cut short, and what the client is told in its place.
var truncations = map[string]struct {
	answer http.HandlerFunc
	status int
	kind   string
}{
	"the context ends while it writes": {func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"charged":`)
		<-r.Context().Done()
	}, 503, "answer-incomplete"},
	"the context ends before it writes": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
	"the context ends and it says so": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(504)
	}, 504, ""},
	"too long, and the context ends": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		io.WriteString(w, strings.Repeat("x", 2000))
	}, 503, "answer-incomplete"},
	"less than it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
	"nothing of what it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
	}, 503, "answer-incomplete"},
	"more than it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
}

// An answer that was cut short is neither kept nor given: the client is told to come again, and the claim is free.
func TestIdempotentLeaseKeepsNoTruncatedAnswer(t *testing.T) {
	for name, c := range truncations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				cut := desk(store, c.answer, hookonce.WithTimeout(5*time.Second), hookonce.WithMaxResponse(1000))
				w := buy(cut, "k1", "10")
				wantAnswer(t, w, c.status, c.kind)
				if strings.Contains(w.Body.String(), "charged") {
					t.Errorf("the client was given the torso %s", w.Body)
				}
				var p printer
				wantAnswer(t, buy(desk(store, &p), "k1", "11"), 422, "idempotency-key-reused") // who knows what the first did
				wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
				p.want(t, 1)
			})
		})
	}
}

// The same after a lease that was lost and that nobody took over: its answer would be recorded under a token
// that is still current.
func TestIdempotentLeaseKeepsNoAnswerAfterALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		lost := desk(faulty{Store: store, extend: away}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			io.WriteString(w, "written without a lease")
		}), hookonce.WithTimeout(time.Hour))
		wantAnswer(t, buy(lost, "k1", "10"), 503, "answer-incomplete")
		var p printer
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
		p.want(t, 1)
	})
}

// A proxy whose upstream breaks off hands on what it got. Where no server is round it, it does not even panic: only
// the length that the upstream declared tells.
func TestIdempotentLeaseBehindAProxyThatIsCutOff(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
		io.WriteString(w, `{"charged":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	store := memstore.New()
	wantAnswer(t, buy(desk(store, proxy), "k1", "10"), 503, "answer-incomplete")
	var p printer
	wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
	p.want(t, 1)
}

// A declared length that is met, or that counts for nothing, is no reason.
func TestIdempotentKeepsAnswersThatAreWhole(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"declared": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			fmt.Fprint(w, "ok")
		},
		"declared empty": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "0") },
		"204": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(204)
		},
		"304": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(304)
		},
		"no number": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "x")
			fmt.Fprint(w, "ok")
		},
		"declared when too late": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "ok")
			w.Header().Set("Content-Length", "9")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := desk(memstore.New(), answer)
			first := buy(h, "k1", "10")
			wantReplay(t, buy(h, "k1", "10"), first)
		})
	}
}

// In a transaction the work is undone with the answer.
func TestIdempotentKeepsNoTruncatedAnswer(t *testing.T) {
	for name, c := range truncations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				store := memstore.New()
				cut := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
					tx.OnCommit(func() { t.Error("the work under half an answer was committed") })
					c.answer(w, r)
					return nil
				}, hookonce.WithTimeout(5*time.Second), hookonce.WithMaxResponse(1000))
				wantAnswer(t, buy(cut, "k1", "10"), c.status, c.kind)
				wantAnswer(t, buy(counter(store, s.charge), "k1", "10"), 201, "")
				s.want(t, "10")
			})
		})
	}
}
