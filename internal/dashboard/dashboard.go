// Package dashboard shows people what the API tells programs: every page is answers of the API, rendered, and every action is a
// request to it. With Accept: application/json a page's address gives what the page shows.
//
// Pages are HTML from templates. They work without JavaScript; a small script refreshes them. Nothing comes from elsewhere, and
// the policy that they are sent with lets nothing else run.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/doctor"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
)

// Options are the settings of the dashboard.
type Options struct {
	// API answers below [api.Base] who is let in already.
	API http.Handler
	// Guard says who may see pages, and gives browsers their cookies.
	Guard *api.Guard
	// Configuration returns what runs, as a file without secrets.
	Configuration func() string
	// Examine has the doctor look at configuration and store, and returns what it found.
	Examine func(context.Context) []doctor.Finding
	// NotFound answers programs that ask for what is not there.
	NotFound http.HandlerFunc
	// Version is that of the program.
	Version string
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
	// Logger receives at a bounded rate what is wrong with a page. Nil discards it.
	Logger *slog.Logger
}

type dashboard struct {
	opt         Options
	templates   templates
	examination cached[doctorView]
}

// New returns the handler of all pages and of what belongs to them, from / on. It is safe for concurrent use.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = loglimit.Bound(o.Logger)
	d := &dashboard{opt: o}
	d.templates = parse(o.Now)
	mux := http.NewServeMux()
	mux.Handle("GET "+assetPath, http.HandlerFunc(serveAsset))
	mux.HandleFunc("GET /login", d.loginForm)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	for _, p := range pages {
		mux.Handle(p.pattern, o.Guard.ProtectPages(d.page(p.template, p.load), d.refused))
	}
	mux.HandleFunc("/", d.unknown)
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(d.foreign))
	return secured(protection.Handler(mux))
}

// pages is the table of what there is.
var pages = []struct {
	pattern  string
	template string
	load     func(*dashboard, *http.Request) (*page, error)
}{
	{"GET /{$}", "now", (*dashboard).now},
	{"GET /failures", "failures", (*dashboard).failures},
	{"GET /failures/{destination}/{error}", "failure", (*dashboard).failure},
	{"GET /events", "events", (*dashboard).events},
	{"GET /events/{id}", "event", (*dashboard).event},
	{"GET /events/{source}/{key}", "event", (*dashboard).event},
	{"GET /find", "events", (*dashboard).find},
	{"GET /destinations", "destinations", (*dashboard).destinations},
	{"GET /destinations/{name}", "destination", (*dashboard).destination},
	{"GET /sources", "sources", (*dashboard).sources},
	{"GET /sources/{name}", "source", (*dashboard).source},
	{"GET /refused", "refused", (*dashboard).refusedRequests},
	{"GET /store", "store", (*dashboard).store},
	{"GET /audit", "audit", (*dashboard).audit},
	{"GET /configuration", "configuration", (*dashboard).configuration},
	{"GET /doctor", "doctor", (*dashboard).doctor},
	{"POST /events/{id}/replay", "replay", (*dashboard).replayEvent},
	{"POST /replay", "replay", (*dashboard).replayMany},
	{"POST /destinations/{name}/pause", "destination", (*dashboard).pause},
	{"POST /destinations/{name}/resume", "destination", (*dashboard).resume},
}

// policy is what pages may do: nothing but what the listed assets of this host do.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// secured sets the header that all answers have.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin") // with less, forms of our own would have no origin
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// foreign answers a page of another site that wants something changed.
func (d *dashboard) foreign(w http.ResponseWriter, r *http.Request) {
	d.fail(w, r, &problem.Details{Status: http.StatusForbidden, Detail: "a page of another site may not do this"})
}

// unknown answers who asks for what is not there.
func (d *dashboard) unknown(w http.ResponseWriter, r *http.Request) {
	if !wantsPage(r) {
		d.opt.NotFound(w, r)
		return
	}
	d.opt.Guard.ProtectPages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, &problem.Details{Status: http.StatusNotFound, Detail: "there is no such page"})
	}), d.refused).ServeHTTP(w, r)
}
