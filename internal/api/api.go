// Package api answers people and programs about events, and does what operators ask for: JSON over HTTP
// on the admin listener, described by a generated OpenAPI document beside it.
//
// It knows the journal and nothing of how events come in or go out.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
)

const (
	maxBody     = 64 << 10         // of a request
	readTime    = 10 * time.Second // for one question to the store
	lookTime    = 6 * time.Second  // for one that comes before a change
	writeTime   = 20 * time.Second // for one change, however many transactions it takes
	recordTime  = 5 * time.Second  // for the record of what was done already
	maxInFlight = 2                // questions at once, so that asking never takes the store's connections from events
	compareTime = 30 * time.Minute // for asking a sender for what it made, and for acting on it
	maxCompared = 2                // sources at once, which wait for their senders and hold up to 64 MiB of bodies each
	maxTests    = 2                // test messages at once, which wait for others than the store and so take no turn of questions
)

// Base is what all paths begin with.
const Base = "/api/v1"

type api struct {
	opt      Options
	turns    chan struct{}
	tests    chan struct{}
	compared chan struct{}
	attended attended
}

// New returns the handler of all paths below [Base]. Who may ask is for a [Guard] to say.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Payloads == nil {
		o.Payloads = func() Form { return FormOff }
	}
	o.Logger = loglimit.Bound(o.Logger)
	a := &api{opt: o, turns: make(chan struct{}, maxInFlight), tests: make(chan struct{}, maxTests), compared: make(chan struct{}, maxCompared)}
	routes := sync.OnceValue(a.routes)
	return dated(o.Changed, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { routes().ServeHTTP(w, r) }))
}

// routes returns what answers for each path. It is made when somebody asks for the first time: with the schemas of all that is
// asked and answered it takes a megabyte.
func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	h := humago.New(mux, document(a.opt.Version))
	a.register(h)
	serveDocument(mux, h.OpenAPI())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		(&problem.Details{Status: http.StatusNotFound, Detail: "there is nothing here; GET " + Base + "/openapi.json lists what there is"}).Write(w)
	})
	return mux
}

// document is the head of the OpenAPI document.
func document(version string) huma.Config {
	c := huma.DefaultConfig("hookonce", version)
	c.Info.Description = "What happened to webhooks, and how to let it happen again."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // no links to schemas in answers
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "One of admin_tokens. Without any configured, this machine alone is answered."},
	}
	c.Security = []map[string][]string{{"token": {}}}
	return c
}

// serveDocument serves the OpenAPI document in each of its forms, which is made when somebody asks for it for the first time. What
// huma serves by itself is made by several who ask at once, each writing over what the others read.
func serveDocument(mux *http.ServeMux, doc *huma.OpenAPI) {
	var making sync.Mutex // who makes one form leaves the others alone
	for form, write := range map[string]func() ([]byte, error){
		".json": doc.MarshalJSON, "-3.0.json": doc.Downgrade, ".yaml": doc.YAML, "-3.0.yaml": doc.DowngradeYAML,
	} {
		kind := "application/openapi+" + strings.TrimLeft(path.Ext(form), ".")
		text := sync.OnceValues(func() ([]byte, error) {
			making.Lock()
			defer making.Unlock()
			return write()
		})
		mux.HandleFunc("GET "+Base+"/openapi"+form, func(w http.ResponseWriter, _ *http.Request) {
			b, err := text()
			if err != nil {
				(&problem.Details{Status: http.StatusInternalServerError, Detail: "the document cannot be written: " + err.Error()}).Write(w)
				return
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(b)
		})
	}
}

// register is the table of routes.
func (a *api) register(h huma.API) {
	get(h, "list-events", "/events", "List events, newest first", a.list)
	get(h, "get-event", "/events/{source}/{key}", "One event with its attempts and copies", a.byKey)
	get(h, "find-events", "/keys/{key}", "List the events that have a key, whatever their source, newest first", a.byKeyAlone)
	get(h, "get-event-by-id", "/events/{id}", "The same by identifier, for events without a key", a.byID)
	huma.Register(h, tailOperation(), a.tail)
	get(h, "list-failures", "/failures", "Group what failed by destination and kind of error", a.failures)
	get(h, "count-refusals", "/refusals", "Count the requests that were refused, by source", a.refusalCounts)
	get(h, "list-refusals", "/sources/{name}/refusals", "List the last requests to a source that were refused, and why", a.refusals)
	get(h, "list-missing", "/sources/{name}/missing", "List what a sender made and never arrived, as gateways found", a.missing)
	post(h, "dismiss-missing", "/sources/{name}/missing/dismiss", "Say that what never arrived need not be told any more", a.dismiss)
	huma.Register(h, compareOperation(), a.compare)
	post(h, "look-at-event", "/events/{id}"+payloadPath, "Look at the body or the headers of an event, which is on record", a.look)
	get(h, "list-sources", "/sources", "List sources", a.sources)
	get(h, "list-destinations", "/destinations", "List destinations, with health, pause and backlog, and the gateways that deliver to them", a.destinations)
	get(h, "get-overview", "/overview", "What is wrong, in words, and how all stands", a.overview)
	get(h, "list-alerts", "/alerts", "List the alerts that fire, silences, and who is told", a.alerts)
	get(h, "list-alert-rules", "/alerts/rules", "List the rules that alerts go by, and how each stands", a.alertRules)
	get(h, "list-alert-history", "/alerts/history", "List what happened to alerts, newest first", a.alertHistory)
	get(h, "get-stats", "/stats", "Count what is open", a.stats)
	get(h, "get-history", "/history", "Count what happened, by the minute or by the hour", a.history)
	get(h, "list-audit", "/audit", "List what operators did, newest first", a.audit)
	post(h, "replay-event", "/events/{source}/{key}/replay", "Deliver an event again", a.replayKey)
	post(h, "replay-event-by-id", "/events/{id}/replay", "The same by identifier", a.replayID)
	post(h, "replay-events", "/replay", "Deliver again what a filter matches", a.replayMany)
	post(h, "reload", "/reload", "Read the configuration anew, and use it if all of it can be", a.reload)
	post(h, "acknowledge-alert", "/alerts/acknowledge", "Say that somebody is on an alert", a.acknowledge)
	post(h, "silence-alerts", "/alerts/silences", "Have nobody told of alerts for a while", a.silence)
	post(h, "unsilence-alerts", "/alerts/silences/{id}/end", "End a silence", a.unsilence)
	post(h, "test-channel", "/alerts/channels/{name}/test", "Send a test message", a.testChannel)
	post(h, "pause-destination", "/destinations/{name}/pause", "Deliver nothing to a destination until it is resumed", a.pause)
	post(h, "resume-destination", "/destinations/{name}/resume", "Deliver to a destination again", a.resume)
}

func get[I, O any](h huma.API, id, path, summary string, f func(context.Context, *I) (*O, error)) {
	huma.Register(h, operation(http.MethodGet, id, path, summary), f)
}

func post[I, O any](h huma.API, id, path, summary string, f func(context.Context, *I) (*O, error)) {
	huma.Register(h, operation(http.MethodPost, id, path, summary), f)
}

func operation(method, id, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: Base + path, Summary: summary,
		MaxBodyBytes: maxBody, SkipValidateBody: false,
	}
}

// answer is an answer with a JSON body.
type answer[T any] struct{ Body T }

// ask runs a question to the store under a deadline, when it is its turn.
func (a *api) ask(ctx context.Context, limit time.Duration, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return a.problem(ctx, errBusy)
	}
	return a.problem(ctx, question(ctx))
}
