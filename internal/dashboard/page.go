package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/problem"
)

// page is what a page says.
type page struct {
	// Title is what the page is about, in its heading and in the window's.
	Title string
	// Place is the path of the entry of the navigation that the page belongs to.
	Place string
	// Commands do in a terminal what the page does. Each has a name.
	Commands []command
	// Data is what is shown, and what programs get as JSON.
	Data any
	// Again is after how many seconds the page is asked for anew. Zero: never.
	Again int

	// What follows is filled in by the frame.

	Visitor api.Visitor
	Self    string // the address of the page, with its query
	Theme   string // "light", "dark", or empty for that of the system
	Version string
	// to is where a change leads that is done.
	to string
}

// command is a line to type in a terminal.
type command struct {
	Name string // what it does
	Line string
}

// MayAct reports whether the visitor may change something.
func (p *page) MayAct() bool { return p.Visitor.Role == api.Operator }

// places are the entries of the navigation.
var places = []struct{ Path, Name, Key string }{
	{"/", "Now", "n"},
	{"/failures", "Failures", "f"},
	{"/events", "Events", "e"},
	{"/destinations", "Destinations", "d"},
	{"/sources", "Sources", "s"},
	{"/refused", "Refused", "r"},
	{"/store", "Store", "t"},
	{"/audit", "Audit", "a"},
	{"/configuration", "Configuration", "c"},
	{"/doctor", "Doctor", "h"},
}

// page returns the handler of a page.
func (d *dashboard) page(template string, load func(*dashboard, *http.Request) (*page, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		p, err := load(d, r)
		var refusal *Refusal
		switch {
		case errors.As(err, &refusal):
			d.fail(w, r, &problem.Details{Status: refusal.Status, Detail: refusal.Error()})
		case err != nil:
			d.opt.Logger.LogAttrs(r.Context(), slog.LevelError, "dashboard: a page cannot be shown", slog.String("page", template), slog.Any("error", err))
			d.fail(w, r, &problem.Details{Status: http.StatusInternalServerError, Detail: "this page cannot be shown; the log says why"})
		case p.to != "":
			http.Redirect(w, r, p.to, http.StatusSeeOther)
		case wantsData(r):
			d.writeData(w, p)
		default:
			d.write(w, r, http.StatusOK, template, p)
		}
	})
}

// maxForm bounds a form in bytes.
const maxForm = 64 << 10

// write renders a page. Asked again, what has not changed is not sent again.
func (d *dashboard) write(w http.ResponseWriter, r *http.Request, status int, template string, p *page) {
	p.Visitor, p.Self, p.Theme, p.Version = api.VisitorOf(r.Context()), r.URL.RequestURI(), theme(r), d.opt.Version
	if r.Method != http.MethodGet {
		p.Self = p.Place
	}
	var b bytes.Buffer
	if err := d.templates[template].ExecuteTemplate(&b, "layout", p); err != nil {
		d.opt.Logger.LogAttrs(r.Context(), slog.LevelError, "dashboard: a page cannot be rendered", slog.String("page", template), slog.Any("error", err))
		http.Error(w, "this page cannot be shown; the log says why", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Vary", "Accept, Cookie, Authorization")
	if status == http.StatusOK && r.Method == http.MethodGet {
		sum := sha256.Sum256(b.Bytes())
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that hung up does not read it
}

// writeData answers a program with what the page shows.
func (d *dashboard) writeData(w http.ResponseWriter, p *page) {
	text, err := json.Marshal(p.Data)
	if err != nil {
		panic(err) // answers of the API were JSON before
	}
	w.Header().Set("Vary", "Accept, Cookie, Authorization")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// fail says what is wrong: in a page to people, as problem details to programs.
func (d *dashboard) fail(w http.ResponseWriter, r *http.Request, wrong *problem.Details) {
	if !wantsPage(r) {
		wrong.Write(w)
		return
	}
	d.write(w, r, wrong.Status, "problem", &page{Title: http.StatusText(wrong.Status), Data: wrong})
}

// refused answers who is not let in: people are asked for a token.
func (d *dashboard) refused(w http.ResponseWriter, r *http.Request, wrong *problem.Details) {
	if wrong.Status == http.StatusUnauthorized && wantsPage(r) {
		to := "/"
		if r.Method == http.MethodGet {
			to = r.URL.RequestURI()
		}
		http.Redirect(w, r, loginAddress(to), http.StatusSeeOther)
		return
	}
	if wrong.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="hookonce"`)
	}
	d.fail(w, r, wrong)
}

// wantsPage reports whether somebody looks at the answer: browsers say so.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// wantsData reports whether a program reads the answer.
func wantsData(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json") && !wantsPage(r)
}

// theme returns what the visitor chose.
func theme(r *http.Request) string {
	if c, err := r.Cookie("hookonce_theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}
