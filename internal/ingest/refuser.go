package ingest

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/body"
)

// refuser answers the requests to one source that are not acknowledged.
type refuser struct {
	now       func() time.Time
	source    string
	log       eventLog
	watcher   Watcher
	allowlist allowlist
	rejected  map[*refusal]prometheus.Counter
	profile   hookonce.Profile
	allow     string // the methods that are taken
}

// newRefuser returns the refuser of a source that can have the given refusals.
func newRefuser(source string, o Options, m *metrics, profile hookonce.Profile, from allowlist, refusals ...*refusal) refuser {
	r := refuser{
		now:       o.Now,
		source:    source,
		log:       newEventLog(o.Logger, source),
		watcher:   o.Watcher,
		allowlist: from,
		rejected:  make(map[*refusal]prometheus.Counter, len(refusals)),
		profile:   profile,
		allow:     profile.Allow(),
	}
	for _, p := range refusals {
		r.rejected[p] = m.rejected.WithLabelValues(source, p.Reason)
	}
	return r
}

// refuse answers with the problem that err stands for. It returns when a sender that is hung up on has had time to read that.
func (r refuser) refuse(w http.ResponseWriter, req *http.Request, err error) {
	p := refusalOf(err)
	r.rejected[p].Inc()
	own := *p
	own.Status = r.profile.Refusal(p.Status, err)
	var early *tooFast
	switch {
	case errors.As(err, &early):
		own.RetryAfter = early.wait
	case own.Status == http.StatusServiceUnavailable && own.RetryAfter == 0:
		own.RetryAfter = retryAfter
	}
	what := Refusal{Source: r.source, Path: shownPath(req), From: r.allowlist.from(req), Status: own.Status, Reason: own.Reason, Detail: own.Detail}
	r.log.rejected(req.Context(), &own, what, err)
	r.watcher.Refused(what)
	if own.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", r.allow)
	}
	own.Write(w)
	if own.Close {
		body.Linger(w, req)
	}
}

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
