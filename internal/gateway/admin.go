package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/fieldlines"
	"github.com/hookonce/hookonce/provider/spec"
)

// adminHandler serves the listener for people and machines. Whether the process is alive and ready is no
// secret; all else is guarded.
func (g *Gateway) adminHandler() http.Handler {
	guard := api.NewGuard(adminTokens(g.cfg))
	metrics := promhttp.HandlerFor(g.opt.Registry, promhttp.HandlerOpts{})
	if len(g.cfg.AdminTokens) > 0 {
		metrics = guard.Protect(metrics)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle(api.Base+"/", guard.Protect(api.New(g.apiOptions())))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("/", notFound)
	return mux
}

func adminTokens(cfg *config.Config) (tokens []api.Token) {
	for _, t := range cfg.AdminTokens {
		tokens = append(tokens, api.Token{Name: t.Name, Secret: t.Token.Reveal(), Role: api.Role(t.Role)})
	}
	return tokens
}

func (g *Gateway) apiOptions() api.Options {
	var sources []api.Source
	for i := range g.cfg.Sources {
		s := &g.cfg.Sources[i]
		sources = append(sources, api.Source{Name: s.Name, Provider: cmp.Or(s.Provider, s.Mode), Path: "/in/" + s.Name, Destinations: s.Reaches()})
	}
	return api.Options{
		Journal: g.journal,
		Records: g.records,
		Sources: sources,
		Targets: g.targets,
		Field:   g.field,
		Version: g.opt.Version,
		Now:     g.opt.Now,
		Logger:  g.opt.Logger,
	}
}

// field returns what reads a field of the events of a source, for searches. Of a source that is not configured, or
// not any more, it is read as of a provider that is not in the catalogue.
func (g *Gateway) field(source, name string) (api.Reader, error) {
	fields, err := (spec.Spec{}).Fields(spec.Value(name))
	for i := range g.cfg.Sources {
		if s := &g.cfg.Sources[i]; s.Name == source && s.Mode != config.Idempotent {
			fields, err = s.Fields(spec.Value(name))
		}
	}
	if err != nil {
		return nil, err
	}
	return func(header, body []byte) string {
		return fields.Read(&hookonce.Event{Header: fieldlines.Decode(header), Body: body})[0]
	}, nil
}

// targets returns the destinations as they are configured and as they stand.
func (g *Gateway) targets() []api.Target {
	all := g.cfg.AllDestinations()
	targets := make([]api.Target, 0, len(all))
	stand := map[string]deliver.Status{}
	for _, s := range g.deliver.Destinations() {
		stand[s.Name] = s
	}
	for i := range all {
		s := stand[all[i].Name]
		targets = append(targets, api.Target{
			Name: all[i].Name, URL: all[i].Address(), Ordered: all[i].Order == config.ByResource,
			Health:  api.Health{State: string(s.State), Since: known(s.Since), Error: s.Cause, Probe: known(s.Until), Limit: s.Limit},
			Waiting: s.Waiting, Underway: s.Underway,
		})
	}
	return targets
}

// known returns a time, or nil for none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// pingTimeout bounds how long a readiness check waits for the store.
const pingTimeout = 2 * time.Second

// readyz says whether a sender would be answered with a 2xx now. Unlike /healthz its 503 is no reason
// to restart the process, which would not bring the store back.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	if err := g.ready(r.Context()); err != nil {
		w.Header().Set("Retry-After", "1")
		api.WriteProblem(w, http.StatusServiceUnavailable, err.Error())
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
	api.WriteProblem(w, http.StatusNotFound, "there is nothing here; try GET /healthz, /readyz, /metrics or /api/v1/openapi.json")
}
