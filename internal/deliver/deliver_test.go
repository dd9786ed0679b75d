package deliver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// The destination receives what the provider sent, and what hookonce knows about it.
func TestRequest(t *testing.T) {
	type received struct {
		header     http.Header
		host, path string
		body       string
	}
	requests := make(chan received, 4)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- received{r.Header, r.Host, r.RequestURI, string(body)}
	}))
	defer app.Close()
	r := newRig(t, deliver.Destination{URL: strings.Replace(app.URL, "http://", "http://user:fake-password@", 1) + "/hook?x=1"}, nil)

	e := entry("evt 1")
	e.Header = append(e.Header, "Idempotency-Key: the provider's\r\nHost: elsewhere\r\nX-Twice: 1\r\nX-Twice: 2\r\n"...)
	r.accept(t, e)
	got := <-requests
	if got.host != app.Listener.Addr().String() || got.path != "/hook?x=1" || got.body != `{"id":"evt 1"}` {
		t.Errorf("received %+v", got)
	}
	for name, want := range map[string]string{
		"Content-Type":         "application/json",
		"X-Provider-Signature": "t=1,v1=ab",
		"Idempotency-Key":      "billing:evt%201",
		"Hookonce-Source":      "billing",
		"Hookonce-Key":         "evt%201",
		"Hookonce-Event-Type":  "invoice.paid",
		"Hookonce-Attempt":     "1",
		"User-Agent":           "hookonce",
		"Authorization":        "Basic dXNlcjpmYWtlLXBhc3N3b3Jk",
		"X-Twice":              "1, 2",
		"Accept-Encoding":      "",
		"Content-Length":       "14",
	} {
		if value := strings.Join(got.header[name], ", "); value != want {
			t.Errorf("%s = %q, want %q", name, value, want)
		}
	}
	for name, form := range map[string]string{
		"Hookonce-Event-Id":   `^[1-9][0-9]*$`,
		"Hookonce-First-Seen": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
		"Traceparent":         `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`,
	} {
		if value := strings.Join(got.header[name], ", "); !regexp.MustCompile(form).MatchString(value) {
			t.Errorf("%s = %q, want it to match %s", name, value, form)
		}
	}
	if len(got.header) != 14 {
		t.Errorf("%d headers: %v", len(got.header), got.header)
	}
	if o := r.attempts(t, 1)[0]; o.State != journal.Done || o.Status != 200 || o.Error != "" {
		t.Errorf("outcome %+v", o)
	}

	e = entry("")
	e.Type, e.Body, e.Header = "", nil, []byte("User-Agent: Provider/1.0\r\n")
	id := r.accept(t, e)[0].ID
	got = <-requests
	if want := fmt.Sprintf("billing#%d", id); got.header.Get("Idempotency-Key") != want || got.body != "" {
		t.Errorf("received %+v, want the key %q", got, want)
	}
	for _, absent := range []string{"Hookonce-Key", "Hookonce-Event-Type", "Content-Type"} {
		if value, ok := got.header[absent]; ok {
			t.Errorf("%s = %q for an event without it", absent, value)
		}
	}
	if agent := got.header.Get("User-Agent"); agent != "Provider/1.0" {
		t.Errorf("User-Agent = %q", agent)
	}
}

// The key is the same at every attempt, and the attempt's number is not.
func TestKeyIsStableOverAttempts(t *testing.T) {
	type attempt struct{ key, message, number string }
	attempts := make(chan attempt, 4)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts <- attempt{r.Header.Get("Idempotency-Key"), r.Header.Get("Webhook-Id"), r.Header.Get("Hookonce-Attempt")}
		if r.Header.Get("Hookonce-Attempt") != "3" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer app.Close()
	r := newRig(t, deliver.Destination{URL: app.URL, Schedule: retry.Schedule{Attempts: 4}, Secrets: []string{"fake"}}, nil)
	r.accept(t, entry("a"))
	const message = "msg_e9fc854939cc5a819314b4f4f36713cb" // another process makes the same
	for i := range 3 {
		want := attempt{"billing:a", message, fmt.Sprint(i + 1)}
		if got := <-attempts; got != want {
			t.Errorf("attempt %d was %+v, want %+v", i+1, got, want)
		}
	}
	if o := r.attempts(t, 3)[2]; o.State != journal.Done || o.Token != 3 {
		t.Errorf("the last outcome is %+v", o)
	}
}

// Every event is delivered once when nothing fails, over few connections.
func TestConnectionsAreReused(t *testing.T) {
	const events, workers = 500, 8
	var mu sync.Mutex
	keys, conns := map[string]int{}, map[string]bool{}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys[r.Header.Get("Idempotency-Key")]++
		conns[r.RemoteAddr] = true
		_, _ = io.WriteString(w, strings.Repeat("x", 8<<10)) // an answer that must be read for the connection to be kept
	}))
	defer app.Close()
	r := newRig(t, deliver.Destination{URL: app.URL, Concurrency: workers}, nil)
	for i := range events {
		r.accept(t, entry(fmt.Sprintf("evt_%d", i)))
	}
	r.attempts(t, events)
	r.shutDown(t)
	mu.Lock()
	defer mu.Unlock()
	for key, n := range keys {
		if n != 1 {
			t.Errorf("%s was delivered %d times", key, n)
		}
	}
	// A worker may dial while its connection is still on the way back to the pool.
	if len(keys) != events || len(conns) > 4*workers {
		t.Errorf("%d keys over %d connections", len(keys), len(conns))
	}
	if open := r.model.Deliveries(); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}

// A kept connection that its server closes costs no attempt: the transport sends the request again,
// and the destination can tell by the key.
func TestClosedConnectionIsNotAFailedAttempt(t *testing.T) {
	type request struct{ key, attempt string }
	requests := make(chan request, 8)
	var n atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- request{r.Header.Get("Idempotency-Key"), r.Header.Get("Hookonce-Attempt")}
		if n.Add(1) == 2 {
			hijacked(t, "", false)(w, r)
		}
	}))
	defer app.Close()
	r := newRig(t, deliver.Destination{URL: app.URL, Concurrency: 1}, nil)
	r.accept(t, entry("a"))
	r.attempts(t, 1)
	r.accept(t, entry("b"))
	for i, o := range r.attempts(t, 2) {
		if o.State != journal.Done {
			t.Errorf("outcome %d: %+v", i, o)
		}
	}
	for i, want := range []request{{"billing:a", "1"}, {"billing:b", "1"}, {"billing:b", "1"}} {
		if got := <-requests; got != want {
			t.Errorf("request %d was %+v, want %+v", i+1, got, want)
		}
	}
}

func TestNewRefusesAddresses(t *testing.T) {
	for _, address := range []string{"", "app", "ftp://app", "http://", "/path", "http://a b/", "http://user:fake-password@[bad/", "http://user:fake-password/1@app/"} {
		_, err := options{Options: deliver.Options{Destinations: map[string]deliver.Destination{"app": {URL: address}}}}.open()
		if err == nil {
			t.Errorf("%q was taken", address)
		} else if !strings.Contains(err.Error(), `"app"`) || strings.Contains(err.Error(), "fake-password") {
			t.Errorf("the error for %q is %q", address, err)
		}
	}
}
