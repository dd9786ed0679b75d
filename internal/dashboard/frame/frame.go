// Package frame is what both dashboards are made of: the layout around a page, its style and its script, the forms of numbers
// and times, charts, and the policy that all of it is sent with. It knows nothing of what pages show.
//
// Pages are HTML from templates. They work without JavaScript; a small script refreshes them. Nothing comes from elsewhere, and
// the policy that they are sent with lets nothing else run.
package frame

import (
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
)

// Options say what is in a frame.
type Options struct {
	// Templates has the templates of the pages, each in NAME.html, which defines "main".
	Templates fs.FS
	// Functions are what they may call besides the frame's own.
	Functions template.FuncMap
	// Places is the navigation, and Find the field above it. They are shown to visitors with a name.
	Places []Place
	Find   Find
	// Visitor returns who looks, of a request that was let in, or the zero Visitor.
	Visitor func(*http.Request) Visitor
	// Root returns the address of the first page, with a slash at its end, as the page that is asked for links to it. Nil: "/".
	Root func(*http.Request) string
	// Version is that of the program.
	Version string
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
	// Logger receives at a bounded rate what is wrong with a page. Nil discards it.
	Logger *slog.Logger
}

// Frame makes pages. It is safe for concurrent use.
type Frame struct {
	opt       Options
	templates templates
}

// New returns a frame. A template that is wrong panics when its page is first asked for.
func New(o Options) *Frame {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Root == nil {
		o.Root = func(*http.Request) string { return "/" }
	}
	o.Logger = loglimit.Bound(o.Logger)
	return &Frame{o, find(o.Templates, o.Functions, o.Now)}
}

// Relative is a Root for pages that do not know what they are mounted under: it leads up from the path of the request.
func Relative(r *http.Request) string {
	if up := strings.Count(r.URL.EscapedPath(), "/") - 1; up > 0 {
		return strings.Repeat("../", up)
	}
	return "./"
}

// policy is what pages may do: nothing but what the listed assets of this host do.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Secure puts around all pages what none can do without: the header that each answer has, the refusal of what a page of another
// site wants changed, and the files that pages load.
func (f *Frame) Secure(pages http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Fail(w, r, &problem.Details{Status: http.StatusForbidden, Detail: "a page of another site may not do this"})
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+assetPath, serveAsset)
	mux.Handle("/", protection.Handler(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin") // with less, forms of our own would have no origin
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}
