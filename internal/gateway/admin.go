package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminHandler serves the listener for people and machines.
func (g *Gateway) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.opt.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("/", notFound)
	return mux
}

// pingTimeout bounds how long a readiness check waits for the store.
const pingTimeout = 2 * time.Second

// readyz says whether a sender would be answered with a 2xx now. Unlike /healthz its 503 is no reason
// to restart the process, which would not bring the store back.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	if err := g.ready(r.Context()); err != nil {
		w.Header().Set("Retry-After", "1")
		writeProblem(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	fmt.Fprintln(w, "ready")
}

var (
	errStopping = errors.New("the gateway is stopping")
	errFull     = errors.New("the queue is full: events arrive faster than the store commits them")
)

func (g *Gateway) ready(ctx context.Context) error {
	switch {
	case g.stopping.Load():
		return errStopping
	case g.journal.Full():
		return errFull
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := g.journal.Ping(ctx); err != nil {
		return fmt.Errorf("the store can not be written to: %w", err)
	}
	return nil
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, http.StatusNotFound, "there is nothing here; try GET /healthz, /readyz or /metrics")
}

// writeProblem answers with problem details (RFC 9457).
func writeProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
	if err != nil { // strings and numbers always have a JSON form
		body = nil
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(body)
}
