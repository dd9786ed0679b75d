//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// app is what stands behind the gateway: a destination of events that counts them by key, and a service behind
// mode: idempotency that authenticates its callers.
type app struct {
	server *http.Server
	url    string

	mu      sync.Mutex
	counted map[string]int         // deliveries and calls by key
	headers map[string]http.Header // of the events and calls whose key has probe in it
}

// probe is in the keys of requests whose headers are looked at.
const probe = "probe-"

// The credential that the service knows, and where it knows it.
const goodToken = "Bearer a-fake-token-of-a-client"

// startApp serves on a port of its own. headerBytes is the largest header that it takes, 0 for that of net/http.
func startApp(headerBytes int) (*app, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &app{
		url: "http://" + l.Addr().String(), counted: map[string]int{}, headers: map[string]http.Header{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/events", a.event)
	mux.HandleFunc("/observed", func(_ http.ResponseWriter, r *http.Request) { hang(r) })
	mux.HandleFunc("/charges/", a.charge)
	mux.HandleFunc("/mine/", a.mine)
	a.server = &http.Server{Handler: mux, MaxHeaderBytes: headerBytes, ReadHeaderTimeout: patience}
	go func() { _ = a.server.Serve(l) }() // ends with Close
	return a, nil
}

func (a *app) Close() error { return a.server.Close() }

// event takes a delivery.
func (a *app) event(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "incomplete", http.StatusBadRequest)
		return
	}
	if id := idMember.FindSubmatch(body); id != nil {
		a.count(string(id[1]), r)
	}
}

// idMember is where every event of this program has its key.
var idMember = regexp.MustCompile(`"id":"([^"]+)"`)

// count notes that something happened under a key.
func (a *app) count(key string, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key = strings.ReplaceAll(key, `"`, "") // as Idempotency-Key is written
	a.counted[key]++
	if strings.Contains(key, probe) {
		a.headers[key] = r.Header.Clone()
	}
}

// times returns how often something happened under a key.
func (a *app) times(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counted[key]
}

// header returns the header of what came under a key that begins with probe, nil if nothing did.
func (a *app) header(key string) http.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.headers[key]
}

// hangs is the header of requests that are answered only when the other side has given up.
const hangs = "X-Hang"

// hang reads a request, and keeps it for as long as it wants.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Header.Get(hangs) != "" {
		<-r.Context().Done()
	}
}

// charge is what clients with a credential may do. What it answers others is up to the path.
func (a *app) charge(w http.ResponseWriter, r *http.Request) {
	hang(r)
	if r.Header.Get("Authorization") != goodToken {
		status := map[string]int{"/charges/gone": http.StatusNotFound, "/charges/ill": http.StatusInternalServerError}[r.URL.Path]
		if status == 0 {
			status = http.StatusUnauthorized
		}
		http.Error(w, "who are you?", status)
		return
	}
	a.count(r.Header.Get("Idempotency-Key"), r)
	if r.URL.Path == "/charges/slow" {
		time.Sleep(50 * time.Millisecond) // a service takes its time
	}
	_, _ = io.WriteString(w, "charged")
}

// mine answers with the name of the tenant that it sees.
func (a *app) mine(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	tenant := r.Header.Get("X-Tenant")
	a.count(tenant+"/"+r.Header.Get("Idempotency-Key"), r)
	_, _ = io.WriteString(w, "of tenant "+tenant)
}
