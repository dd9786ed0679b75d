package ingest

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
)

// refuser answers the requests to one source that are not acknowledged.
type refuser struct {
	now      func() time.Time
	source   string
	log      eventLog
	watcher  Watcher
	doorman  doorman
	rejected map[*problem]prometheus.Counter
	profile  hookonce.Profile
	allow    string // the methods that are taken
}

// newRefuser returns the refuser of a source that can have the given problems.
func newRefuser(source string, o Options, m *metrics, profile hookonce.Profile, door doorman, problems ...*problem) refuser {
	r := refuser{
		now:      o.Now,
		source:   source,
		log:      newEventLog(o.Logger, source),
		watcher:  o.Watcher,
		doorman:  door,
		rejected: make(map[*problem]prometheus.Counter, len(problems)),
		profile:  profile,
		allow:    profile.Allow(),
	}
	for _, p := range problems {
		r.rejected[p] = m.rejected.WithLabelValues(source, p.reason)
	}
	return r
}

// refuse answers with the problem that err stands for. It returns when a sender that is hung up on has had time to read that.
func (r refuser) refuse(w http.ResponseWriter, req *http.Request, err error) {
	p := problemOf(err)
	r.rejected[p].Inc()
	own := *p
	own.status = r.profile.Refusal(p.status, err)
	var early *tooFast
	if errors.As(err, &early) {
		own.retryAfter = wholeSeconds(early.wait)
	}
	what := Refusal{Source: r.source, Path: shownPath(req), From: r.doorman.from(req), Status: own.status, Reason: own.reason, Detail: own.detail}
	r.log.rejected(req.Context(), &own, what, err)
	r.watcher.Refused(what)
	own.write(w, r.allow)
	if own.hangUp {
		linger(w, req)
	}
}

// wholeSeconds returns a wait in the form of Retry-After, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
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
