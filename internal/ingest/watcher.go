package ingest

import (
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Watcher is told what becomes of every request, for people who look on. Unlike the log it hears of all of
// them. Its methods are called while the sender waits, by many goroutines at a time, and must not block.
type Watcher interface {
	// Stored is called for every event that was stored or recognised. Routed is false if no route wanted it.
	Stored(source string, e *hookonce.Event, r journal.Result, routed bool)
	// Greeted is called for every challenge that was answered.
	Greeted(source string)
	// Refused is called for every request that was not acknowledged.
	Refused(Refusal)
}

// Refusal is a request that was not acknowledged.
type Refusal struct {
	// Source is empty if no source is configured under the path.
	Source string
	// Path begins as the request's does; what may be secret in it is left out. See [shownPath].
	Path string
	// From is the address that the request came from, as far as it can be told.
	From string
	// Status is that of the answer, Reason its short name, and Detail a sentence about it.
	Status         int
	Reason, Detail string
}

// blind is the watcher where there is none.
type blind struct{}

func (blind) Stored(string, *hookonce.Event, journal.Result, bool) {}
func (blind) Greeted(string)                                       {}
func (blind) Refused(Refusal)                                      {}

// maxShownPath bounds in bytes what is shown of a path that a stranger chose.
const maxShownPath = 128

// shownPath returns the first two segments of a request's path, escaped: enough to see which source was
// meant. What comes after them, and in the query, may be a token.
func shownPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	parts := strings.SplitN(path, "/", 4) // the first one is empty
	if len(parts) == 4 && parts[3] != "" {
		path = strings.Join(parts[:3], "/") + "/…"
	}
	if len(path) > maxShownPath {
		path = path[:maxShownPath] + "…"
	}
	return path
}
