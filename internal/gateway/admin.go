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
	"github.com/hookonce/hookonce/internal/dashboard"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/doctor"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// adminMux serves the listener for people and machines. Whether the process is alive and ready is no secret; all else is
// guarded.
func (g *Gateway) adminMux(ready, questions http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.guard.Protect(promhttp.HandlerFor(g.opt.Registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   g.tracer != nil, // which alone has exemplars, and writes le="1.0" for le="1"
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", ready)
	mux.Handle(api.Base+"/", g.guard.Protect(questions))
	var pages http.Handler // of the library, once the store is open
	if g.library.store != nil {
		pages = g.library.pages(g.opt, g.store.RecordAudit)
	}
	mux.Handle("/", dashboard.New(dashboard.Options{
		Library: pages,
		API:     questions, Guard: g.guard, NotFound: notFound, Version: g.opt.Version, Now: g.opt.Now, Logger: g.opt.strange,
		Configuration: func() string { return g.config().Show() }, File: g.configFile(),
		Examine: func(ctx context.Context) []doctor.Finding {
			return doctor.Examine(ctx, doctor.Patient{Config: g.config(), Now: g.opt.Now})
		},
	}))
	return mux
}

// apiSources returns the sources as they are configured.
func apiSources(cfg *config.Config) []api.Source {
	all := cfg.Sources
	sources := make([]api.Source, 0, len(all))
	for i := range all {
		s := &all[i]
		again, demand := s.SendsAgain()
		sources = append(sources, api.Source{Name: s.Name, Provider: cmp.Or(s.Provider, s.Mode), Path: "/in/" + s.Name, Destinations: s.Reaches(),
			SendsAgain: int64(again / time.Second), SentOnDemand: int64(demand / time.Second), NotCompared: notCompared(s)})
	}
	return sources
}

// fieldReader returns what reads a field of the events of a source, for searches. Of a source that is not configured, or
// not any more, it is read as of a provider that is not in the catalogue.
func fieldReader(cfg *config.Config, source, name string) (api.Reader, error) {
	fields, err := (spec.Spec{}).Fields(spec.Value(name))
	all := cfg.Sources
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

// secretOf returns the number of the secret that a fingerprint of an event of the source stands for, as it is configured.
func (g *Gateway) secretOf(source string, vouched int16) int {
	for _, s := range g.wired.Load().ingest.Sources {
		if p, knows := s.Provider.(interface{ SecretOf(int16) int }); knows && s.Name == source {
			return p.SecretOf(vouched)
		}
	}
	return 0
}

// apiTargets returns the destinations as they are configured and as they stand.
func apiTargets(cfg *config.Config, status []deliver.Status) []fleet.Target {
	all := cfg.AllDestinations()
	targets := make([]fleet.Target, 0, len(all))
	stand := map[string]deliver.Status{}
	for _, s := range status {
		stand[s.Name] = s
	}
	for i := range all {
		s := stand[all[i].Name]
		targets = append(targets, fleet.Target{
			Name: all[i].Name, URL: all[i].Address(), Ordered: all[i].Order == config.ByResource,
			Health:  fleet.Health{State: string(s.State), Since: known(s.Since), Error: s.Cause, Probe: known(s.Until), Limit: s.Limit},
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
	(&problem.Details{Status: http.StatusNotFound, Detail: "there is nothing here; try GET /healthz, /readyz, /metrics or /api/v1/openapi.json"}).Write(w)
}

// refusal says in the API's words why a configuration is not used.
func refusal(err error) error {
	var faults settings.Faults
	var restart *RestartError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		refused := &api.Refused{Detail: fmt.Sprintf("the configuration has %d fault(s); nothing was changed", len(faults)), Invalid: true}
		for _, f := range faults {
			refused.Faults = append(refused.Faults, f.Error())
		}
		return refused
	case errors.As(err, &restart):
		return &api.Refused{Detail: err.Error()}
	}
	return &api.Refused{Detail: err.Error() + "; " + leaves(err)}
}
