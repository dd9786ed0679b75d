package dashboard

import (
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/problem"
)

// What pages are made of, under short names.
type (
	page    = frame.Page
	command = frame.Command
	// Chart and Point are those of the pages.
	Chart = frame.Chart
	Point = frame.Point
)

var (
	segment, quoted, query       = frame.Segment, frame.Quoted, frame.Query
	span, stamp, clock           = frame.Span, frame.Stamp, frame.Clock
	number, size, percent, share = frame.Number, frame.Size, frame.Percent, frame.Share
	plural                       = frame.Plural
)

// places are the entries of the navigation.
var places = []frame.Place{
	{Path: "/", Name: "Now", Key: "n"},
	{Path: "/alerts", Name: "Alerts", Key: "w"},
	{Path: "/failures", Name: "Failures", Key: "f"},
	{Path: "/events", Name: "Events", Key: "e"},
	{Path: "/tail", Name: "Tail", Key: "l"},
	{Path: "/destinations", Name: "Destinations", Key: "d"},
	{Path: "/sources", Name: "Sources", Key: "s"},
	{Path: "/refused", Name: "Refused", Key: "r"},
	{Path: "/store", Name: "Store", Key: "t"},
	{Path: "/audit", Name: "Audit", Key: "a"},
	{Path: "/configuration", Name: "Configuration", Key: "c"},
	{Path: "/doctor", Name: "Doctor", Key: "h"},
}

//go:embed templates
var templateFiles embed.FS

// framed returns what is around the pages.
func framed(o Options) *frame.Frame {
	own, err := fs.Sub(templateFiles, "templates")
	if err != nil {
		panic(err) // they are in the program
	}
	shown := places
	if o.Library != nil {
		shown = append(slices.Clone(places), frame.Place{Path: libraryPath, Name: "Library", Key: "b"})
	}
	return frame.New(frame.Options{
		Templates: own, Functions: template.FuncMap{"open": openOf, "words": groupWords, "address": groupAddress,
			"made": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
			"next": func(d api.Delivery) api.Next { return d.Next(o.Now()) }},
		Places: shown, Find: frame.Find{Path: "/find", Label: "Find an event by its key or identifier", Placeholder: "Key or id"},
		Visitor: func(r *http.Request) frame.Visitor {
			v := api.VisitorOf(r.Context())
			return frame.Visitor{Name: v.Name, MayAct: v.Role == api.Operator, Session: v.Session}
		},
		Version: o.Version, Now: o.Now, Logger: o.Logger,
	})
}

// refused answers who is not let in: people are asked for a token.
func (d *dashboard) refused(w http.ResponseWriter, r *http.Request, wrong *problem.Details) {
	if wrong.Status == http.StatusUnauthorized && frame.WantsPage(r) {
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
	d.frame.Fail(w, r, wrong)
}
