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
	mux := g.adminMux()
	mux.Handle(api.Base+"/", g.guard.Protect(api.New(g.apiOptions())))
	return mux
}

// adminMux has what needs no store.
func (g *Gateway) adminMux() *http.ServeMux {
	g.guard = api.NewGuard(adminTokens(g.config()))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.metrics())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("/", notFound)
	return mux
}

// metrics answers whoever may ask: anybody, unless there are tokens.
func (g *Gateway) metrics() http.Handler {
	open := promhttp.HandlerFor(g.opt.Registry, promhttp.HandlerOpts{})
	guarded := g.guard.Protect(open)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(g.config().AdminTokens) > 0 {
			guarded.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})
}

func adminTokens(cfg *config.Config) (tokens []api.Token) {
	for _, t := range cfg.AdminTokens {
		tokens = append(tokens, api.Token{Name: t.Name, Secret: t.Token.Reveal(), Role: api.Role(t.Role)})
	}
	return tokens
}

func (g *Gateway) apiOptions() api.Options {
	return api.Options{
		Journal: g.journal,
		Records: g.records,
		Sources: g.sources,
		Self:    g.fleet.self,
		Targets: g.targets,
		Reload:  g.reloadFor,
		Field:   g.field,
		Version: g.opt.Version,
		Now:     g.opt.Now,
		Logger:  g.opt.strange,
	}
}

// sources returns the sources as they are configured.
func (g *Gateway) sources() []api.Source {
	all := g.config().Sources
	sources := make([]api.Source, 0, len(all))
	for i := range all {
		s := &all[i]
		sources = append(sources, api.Source{Name: s.Name, Provider: cmp.Or(s.Provider, s.Mode), Path: "/in/" + s.Name, Destinations: s.Reaches()})
	}
	return sources
}

// field returns what reads a field of the events of a source, for searches. Of a source that is not configured, or
// not any more, it is read as of a provider that is not in the catalogue.
func (g *Gateway) field(source, name string) (api.Reader, error) {
	fields, err := (spec.Spec{}).Fields(spec.Value(name))
	all := g.config().Sources
	for i := range all {
		if s := &all[i]; s.Name == source && s.Mode != config.Idempotent {
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
	all := g.config().AllDestinations()
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

var errFull = errors.New("the queue is full: events arrive faster than the store commits them")

func (g *Gateway) ready(ctx context.Context) error {
	switch {
	case g.stopping.Load():
		return ErrStopping
	case g.wired.Load().observed.any():
		return nil // senders to applications that are observed must not be sent elsewhere for a fault of ours
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
