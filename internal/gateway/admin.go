package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/provider/spec"
)

// adminHandler serves the listener for people and machines. Whether the process is alive and ready is no
// secret; all else is guarded.
func (g *Gateway) adminHandler() http.Handler {
	mux := g.adminMux()
	mux.Handle(api.Base+"/", g.guard.Protect(api.New(g.apiOptions())))
	return mux
}

// adminMux has what needs no store. Whoever asks whether the process is alive or ready is told that, and no reasons.
func (g *Gateway) adminMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.guard.Protect(promhttp.HandlerFor(g.opt.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})))
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
	return func(lines, body []byte) string {
		return fields.Read(&hookonce.Event{Header: header.Decode(lines), Body: body})[0]
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

func notFound(w http.ResponseWriter, r *http.Request) {
	api.WriteProblem(w, http.StatusNotFound, "there is nothing here; try GET /healthz, /readyz, /metrics or /api/v1/openapi.json")
}
