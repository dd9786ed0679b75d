// Package dashboard shows people what the API tells programs: every page is answers of the API, rendered, and every action is a
// request to it. With Accept: application/json a page's address gives what the page shows.
//
// What is around them, and what they are drawn with, is in [frame].
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/doctor"
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
	// File is the configuration file, as a word of a shell, where commands do not find it by themselves.
	File string
	// Examine has the doctor look at configuration and store, and returns what it found.
	Examine func(context.Context) []doctor.Finding
	// Library shows what the library keeps in the database of the journal, to whoever was let in. Nil: it is not shown.
	Library http.Handler
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
	frame       *frame.Frame
	examination cached[doctorView]
}

// New returns the handler of all pages and of what belongs to them, from / on. It is safe for concurrent use.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &dashboard{opt: o, frame: framed(o)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", d.loginForm)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	for _, p := range pages {
		load := func(r *http.Request) (*page, error) {
			a := new(asOf)
			shown, err := p.load(d, r.WithContext(context.WithValue(r.Context(), asOfKey{}, a)))
			if shown != nil {
				shown.AsOf = a.moment
				for i := range shown.Commands {
					shown.Commands[i][1] = alert.Typed(shown.Commands[i][1], o.File)
				}
			}
			return shown, err
		}
		mux.Handle(p.pattern, o.Guard.ProtectPages(d.frame.Page(p.template, load), d.refused))
	}
	mux.Handle("GET /tail/stream", o.Guard.ProtectPages(http.HandlerFunc(d.stream), d.refused))
	if o.Library != nil {
		mux.Handle(libraryPath, o.Guard.ProtectPages(http.StripPrefix(strings.TrimSuffix(libraryPath, "/"), o.Library), d.refused))
	}
	mux.HandleFunc("/", d.unknown)
	return d.frame.Secure(mux)
}

// libraryPath is where [Options.Library] is.
const libraryPath = "/library/"

// pages is the table of what there is.
var pages = []struct {
	pattern  string
	template string
	load     func(*dashboard, *http.Request) (*page, error)
}{
	{"GET /{$}", "now", (*dashboard).now},
	{"GET /alerts", "alerts", (*dashboard).alerts},
	{"GET /failures", "failures", (*dashboard).failures},
	{"GET /failures/{destination}/{error}", "failure", (*dashboard).failure},
	{"GET /events", "events", (*dashboard).events},
	{"GET /events/{id}", "event", (*dashboard).event},
	{"GET /events/{source}/{key}", "event", (*dashboard).event},
	{"GET /tail", "tail", (*dashboard).tail},
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
	{"POST /events/{id}/payload", "payload", (*dashboard).payload},
	{"POST /replay", "replay", (*dashboard).replayMany},
	{"POST /alerts/acknowledge", "alerts", (*dashboard).acknowledge},
	{"POST /alerts/silence", "alerts", (*dashboard).silence},
	{"POST /alerts/unsilence", "alerts", (*dashboard).unsilence},
	{"POST /alerts/test", "alerts", (*dashboard).testChannel},
	{"POST /sources/{name}/dismiss", "source", (*dashboard).dismiss},
	{"POST /destinations/{name}/pause", "destination", (*dashboard).pause},
	{"POST /destinations/{name}/resume", "destination", (*dashboard).resume},
}

// unknown answers who asks for what is not there.
func (d *dashboard) unknown(w http.ResponseWriter, r *http.Request) {
	if !frame.WantsPage(r) {
		d.opt.NotFound(w, r)
		return
	}
	d.opt.Guard.ProtectPages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.frame.Fail(w, r, &problem.Details{Status: http.StatusNotFound, Detail: "there is no such page"})
	}), d.refused).ServeHTTP(w, r)
}
