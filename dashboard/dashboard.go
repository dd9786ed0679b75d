// Package dashboard shows people what a store holds: claims that are stuck, failed or dead, the outbox, guards, what
// `hookonce reconcile effects` found, and how much happens, if the program counts it (package tallies). It is for programs that use the library without a gateway, as a handler for their own admin
// mux; `hookonce dashboard` is the same in a program of its own.
//
// Most programs need [Handler] alone. It asks for a function that says who may look, so that nobody mounts it open to the
// world by accident. Who may look may change nothing, unless [WithActions] says otherwise.
//
// Every page is bounded, works without JavaScript, is its own JSON with Accept: application/json, and shows the command that
// does the same. Bodies and payloads are never shown; keys and the texts of errors are.
package dashboard

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/problem"
)

// Option changes what [Handler] returns.
type Option func(*dashboard)

// WithActions lets those change something for whom may returns true: have a dead effect carried out again, and give back a
// claim that is stuck. They are asked for a reason, which is logged with their name, and recorded where [WithRecord] says so.
// Without this option nobody can.
func WithActions(may func(*http.Request) bool) Option { return func(d *dashboard) { d.may = may } }

// WithRecord has every change put on record before it is made, such as in a program's own audit log. An error of record refuses
// the change: the visitor is answered 503, and the log has the error. Record has five seconds, together with the change. What is
// on record was allowed, and may have failed all the same: the log says what was done. Without this option the log is all there is.
func WithRecord(record func(context.Context, Change) error) Option {
	return func(d *dashboard) { d.record = record }
}

// Change is something that a visitor is about to do.
type Change struct {
	// By is the visitor's name, as authorize returned it, and Reason why they do it: 1 to 500 bytes, in their words.
	By, Reason string
	Action     Action
	// What it is done to, for people: "effect 7, mail, of evt_1 from billing" or "claim of evt_1 from billing, attempt 3".
	What string
}

// Action is a kind of [Change].
type Action string

// The actions.
const (
	Redrive  Action = "redrive"   // a dead effect is carried out again
	GiveBack Action = "give_back" // a claim that is stuck, or held without a deadline, fails, so that the next copy of its event tries again
)

// WithLogger sets where changes are logged, and what is wrong with a page. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(d *dashboard) { d.log = l } }

// WithClock sets the clock that ages are told by. The default is [time.Now].
func WithClock(now func() time.Time) Option { return func(d *dashboard) { d.now = now } }

// WithVersion sets what pages say is the version of the program. The default is nothing.
func WithVersion(version string) Option { return func(d *dashboard) { d.version = version } }

// WithHome puts a link above the others, which leads out of the dashboard: to the pages that it is mounted beside, such as
// "/admin/". The default is none.
func WithHome(name, address string) Option {
	return func(d *dashboard) { d.home = []frame.Place{{Name: name, Key: "h", Address: address}} }
}

// Local lets requests in that come from this machine, under a name of this machine: a page elsewhere cannot bring a browser
// here under a name of its own. Everybody on the machine is let in, as "local". It is no guard behind a proxy, through which
// all requests come from this machine: one that says that it was forwarded is refused, and so is HTTP/1.0, in which older nginx
// asks without saying so; of other proxies that do not say so nobody can tell. Behind any proxy, have [Handler] ask for more.
func Local(r *http.Request) (name string, ok bool) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return "", false
	}
	return "local", header.LoopbackHost(r.Host) && !header.Proxied(r)
}

// Handler returns the dashboard of a store. Authorize says who may look: it returns the visitor's name, which stands in the
// pages and in the log, and whether they are let in; others are answered 403. [Local] is one for a machine of one's own.
// Handler panics without a store or without authorize.
//
// It serves paths from / on, and links are relative: below another path, mount it with [http.StripPrefix].
//
//	mux.Handle("/admin/hookonce/", http.StripPrefix("/admin/hookonce", dashboard.Handler(store, authorize)))
//
// What pages may do is bounded by a Content-Security-Policy of their own; what changes something is refused to pages of
// other sites ([http.CrossOriginProtection]). The handler is safe for concurrent use, and needs no end.
func Handler(store hookonce.Inspector, authorize func(r *http.Request) (name string, ok bool), opts ...Option) http.Handler {
	switch {
	case store == nil:
		panic("dashboard: Handler needs a store")
	case authorize == nil:
		panic("dashboard: Handler needs a function that says who may look; dashboard.Local lets in this machine alone")
	}
	d := &dashboard{store: store, log: slog.Default(), now: time.Now, may: func(*http.Request) bool { return false },
		record: func(context.Context, Change) error { return nil }}
	for _, o := range opts {
		o(d)
	}
	if d.may == nil || d.record == nil || d.log == nil || d.now == nil {
		panic("dashboard: WithActions, WithRecord, WithLogger and WithClock do not take nil")
	}
	d.admin, _ = store.(hookonce.EffectAdmin)
	d.tallier, _ = store.(hookonce.Tallier)
	own, err := fs.Sub(templates, "templates")
	if err != nil {
		panic(err) // they are in the program
	}
	d.frame = frame.New(frame.Options{
		Templates: own, Places: slices.Concat(d.home, places), Find: frame.Find{Path: "/find", Label: "Find a claim by its key", Placeholder: "Key"},
		Visitor: d.visitor, Root: frame.Relative, Version: d.version, Now: d.now, Logger: d.log,
	})
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.Handle(p.pattern, d.frame.Page(p.template, func(r *http.Request) (*frame.Page, error) { return d.load(r, p.load) }))
	}
	for pattern, change := range changes {
		mux.Handle(pattern, d.frame.Page("problem", func(r *http.Request) (*frame.Page, error) { return d.change(r, change) }))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		d.frame.Fail(w, r, &problem.Details{Status: http.StatusNotFound, Detail: "there is no such page; below a path of its own, the dashboard is mounted with http.StripPrefix"})
	})
	return d.frame.Secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := authorize(r)
		if !ok {
			d.frame.Fail(w, r, &problem.Details{Status: http.StatusForbidden, Detail: "this program does not let you look at this"})
			return
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, name)))
	}))
}

type dashboard struct {
	store   hookonce.Inspector
	admin   hookonce.EffectAdmin // nil: it has no outbox
	tallier hookonce.Tallier     // nil: it keeps nothing that was counted
	may     func(*http.Request) bool
	record  func(context.Context, Change) error
	log     *slog.Logger
	now     func() time.Time
	version string
	home    []frame.Place
	frame   *frame.Frame
}

//go:embed templates/*.html templates/_parts.html
var templates embed.FS

var places = []frame.Place{
	{Path: "/", Name: "Now", Key: "n"},
	{Path: "/claims", Name: "Claims", Key: "c"},
	{Path: "/outbox", Name: "Outbox", Key: "o"},
	{Path: "/guards", Name: "Guards", Key: "u"},
	{Path: "/reconciliations", Name: "Reconciliations", Key: "r"},
}

// pages is the table of what there is to look at.
var pages = []struct {
	pattern, template string
	load              func(*dashboard, *http.Request) (*frame.Page, error)
}{
	{"GET /{$}", "now", (*dashboard).nowPage},
	{"GET /claims", "claims", (*dashboard).claims},
	{"GET /claim", "claim", (*dashboard).claim},
	{"GET /find", "claims", (*dashboard).find},
	{"GET /outbox", "outbox", (*dashboard).outbox},
	{"GET /effect", "effect", (*dashboard).effect},
	{"GET /guards", "guards", (*dashboard).guards},
	{"GET /reconciliations", "reconciliations", (*dashboard).reconciliations},
}

// changes is the table of what can be done.
var changes = map[string]func(*dashboard, *http.Request, string) (*change, error){
	"POST /claim":  (*dashboard).giveBack,
	"POST /effect": (*dashboard).redrive,
}

type visitorKey struct{}

// visitor returns who looks. Nobody who was not let in has a name.
func (d *dashboard) visitor(r *http.Request) frame.Visitor {
	name, in := r.Context().Value(visitorKey{}).(string)
	if name == "" && in {
		name = "visitor"
	}
	return frame.Visitor{Name: name, MayAct: in && d.may(r)}
}

// refusal is why something is not shown or done.
type refusal struct{ problem.Details }

func refuse(status int, detail string) error {
	return &refusal{problem.Details{Status: status, Detail: detail}}
}

func (r *refusal) Error() string             { return r.Detail }
func (r *refusal) Problem() *problem.Details { return &r.Details }

// patience bounds what a page asks of the store.
const patience = 5 * time.Second

// load makes a page, within the time, and says in words what a store answers that cannot.
func (d *dashboard) load(r *http.Request, load func(*dashboard, *http.Request) (*frame.Page, error)) (*frame.Page, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	p, err := load(d, r.WithContext(ctx))
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, hookonce.ErrSchemaMissing), errors.Is(err, hookonce.ErrSchemaNewer):
		d.log.Error("dashboard: the tables cannot be read", "error", err)
		return nil, refuse(http.StatusServiceUnavailable, "the tables are not there, or of another version: run hookonce migrate; the log has the details")
	case ctx.Err() != nil:
		return nil, refuse(http.StatusServiceUnavailable, "the store did not answer within "+patience.String()+"; narrow the filter, or look at the server")
	}
	return nil, err
}

// maxReason bounds the reason for a change, in bytes.
const maxReason = 500

// change is what a visitor asked for, once nothing speaks against it.
type change struct {
	Change
	do func(context.Context) error
	to string // where it can be seen
}

// change puts what a visitor asks for on record, does it, and leads to where it can be seen.
func (d *dashboard) change(r *http.Request, prepare func(*dashboard, *http.Request, string) (*change, error)) (*frame.Page, error) {
	if !d.may(r) {
		return nil, refuse(http.StatusForbidden, "you may look, and change nothing")
	}
	reason := r.PostFormValue("reason")
	if reason == "" || len(reason) > maxReason {
		return nil, refuse(http.StatusUnprocessableEntity, "a change needs a reason, of 500 bytes at most")
	}
	if !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) {
		return nil, refuse(http.StatusUnprocessableEntity, "the reason is not readable text: write it in one line, without control characters")
	}
	return d.load(r, func(d *dashboard, r *http.Request) (*frame.Page, error) {
		c, err := prepare(d, r, reason)
		if err != nil {
			return nil, err
		}
		about := []any{"action", c.Action, "by", c.By, "reason", c.Reason, "what", c.What}
		if err := d.record(r.Context(), c.Change); err != nil {
			d.log.ErrorContext(r.Context(), "dashboard: a change could not be put on record, and was not made", append(about, "error", err)...)
			return nil, refuse(http.StatusServiceUnavailable, "this could not be put on record, and was not done; the log says why")
		}
		if err := c.do(r.Context()); err != nil {
			d.log.WarnContext(r.Context(), "dashboard: a change failed", append(about, "error", err)...)
			return nil, err
		}
		d.log.InfoContext(r.Context(), "dashboard: a change was made", about...)
		return &frame.Page{To: c.to}, nil
	})
}
