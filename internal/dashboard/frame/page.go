package frame

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
	"time"

	"github.com/hookonce/hookonce/internal/problem"
)

// Page is what a page says.
type Page struct {
	// Title is what the page is about, in its heading and in the window's.
	Title string
	// Place is the path of the entry of the navigation that the page belongs to.
	Place string
	// Commands do in a terminal what the page does. Each has a name.
	Commands []Command
	// Data is what is shown, and what programs get as JSON.
	Data any
	// Again is after how many seconds the page is asked for anew. Zero: never.
	Again int
	// AsOf is the moment up to which what is shown is complete, of what was read from a standby. Zero: it was not.
	AsOf time.Time
	// To is where a change leads that is done: then nothing is shown here.
	To string

	// What follows is filled in by the frame.

	Visitor Visitor
	Self    string // the address of the page, with its query
	Theme   string // "light", "dark", or empty for that of the system
	Version string
	Places  []Place
	Find    Find
	root    string
}

// Command is what a command does, and the line to type in a terminal.
type Command [2]string

// Name says what it does.
func (c Command) Name() string { return c[0] }

// Line is what to type.
func (c Command) Line() string { return c[1] }

// Visitor is who looks.
type Visitor struct {
	// Name is what they are called. Empty: it is not known who looks, and nothing but the page itself is shown.
	Name string
	// MayAct is set for those who may change something.
	MayAct bool
	// Session is set if they can log out.
	Session bool
}

// Place is an entry of the navigation. One with an address leads out of these pages.
type Place struct{ Path, Name, Key, Address string }

// Find is what the field above the navigation finds. With an empty path there is no field.
type Find struct{ Path, Label, Placeholder string }

// MayAct reports whether the visitor may change something.
func (p *Page) MayAct() bool { return p.Visitor.MayAct }

// At returns the address of a path of ours, from where the page is.
func (p *Page) At(path string) string { return p.root + strings.TrimPrefix(path, "/") }

// Asset returns the address of a file that pages load.
func (p *Page) Asset(name string) string { return p.At(assetPath + assets()[name].name) }

// Page returns the handler of a page. What load returns is shown by the template of that name, or sent as JSON.
func (f *Frame) Page(template string, load func(*http.Request) (*Page, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
		p, err := load(r)
		var refusal interface{ Problem() *problem.Details }
		switch {
		case errors.As(err, &refusal):
			f.Fail(w, r, refusal.Problem())
		case err != nil:
			f.opt.Logger.LogAttrs(r.Context(), slog.LevelError, "dashboard: a page cannot be shown", slog.String("page", template), slog.Any("error", err))
			f.Fail(w, r, &problem.Details{Status: http.StatusInternalServerError, Detail: "this page cannot be shown; the log says why"})
		case p.To != "":
			p.root = f.opt.Root(r)
			w.Header().Set("Location", p.At(p.To)) // as it is: the path here may lack what this handler is mounted under
			w.WriteHeader(http.StatusSeeOther)
		case WantsData(r):
			writeData(w, p)
		default:
			f.Write(w, r, http.StatusOK, template, p)
		}
	})
}

// MaxForm bounds a form in bytes.
const MaxForm = 64 << 10

// Write renders a page. Asked again, what has not changed is not sent again.
func (f *Frame) Write(w http.ResponseWriter, r *http.Request, status int, template string, p *Page) {
	p.root = f.opt.Root(r)
	p.Visitor, p.Self, p.Theme, p.Version = f.opt.Visitor(r), p.At(r.URL.RequestURI()), theme(r), f.opt.Version
	p.Places, p.Find = f.opt.Places, f.opt.Find
	if r.Method != http.MethodGet {
		p.Self = p.At(p.Place)
	}
	var b bytes.Buffer
	if err := f.templates[template]().ExecuteTemplate(&b, "layout", p); err != nil {
		f.opt.Logger.LogAttrs(r.Context(), slog.LevelError, "dashboard: a page cannot be rendered", slog.String("page", template), slog.Any("error", err))
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
func writeData(w http.ResponseWriter, p *Page) {
	text, err := json.Marshal(p.Data)
	if err != nil {
		panic(err) // what is shown are our own types
	}
	w.Header().Set("Vary", "Accept, Cookie, Authorization")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// Fail says what is wrong: in a page to people, as problem details to programs.
func (f *Frame) Fail(w http.ResponseWriter, r *http.Request, wrong *problem.Details) {
	if !WantsPage(r) {
		wrong.Write(w)
		return
	}
	f.Write(w, r, wrong.Status, "problem", &Page{Title: http.StatusText(wrong.Status), Data: wrong})
}

// WantsPage reports whether somebody looks at the answer: browsers say so.
func WantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// WantsData reports whether a program reads the answer.
func WantsData(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json") && !WantsPage(r)
}

// theme returns what the visitor chose.
func theme(r *http.Request) string {
	if c, err := r.Cookie("hookonce_theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}
