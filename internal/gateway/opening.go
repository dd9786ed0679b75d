package gateway

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/sqlitefile"
	"github.com/hookonce/hookonce/internal/tally"
)

// opening is a start that goes on while requests are answered already.
type opening struct {
	cancel   context.CancelFunc // nil: there is none
	done     chan struct{}
	alerting *alerting.Alerting // which tells that the store is away
	cause    atomic.Pointer[error]
}

// why is what the last attempt failed for.
func (o *opening) why() error { return *o.cause.Load() }

// close ends it, and waits until it has.
func (o *opening) close() {
	if o.cancel != nil {
		o.cancel()
		<-o.done
	}
}

const (
	openAgain   = time.Second      // between two attempts to open the store
	openTimeout = 10 * time.Second // of the first, where others depend on the gateway: the following take their time
)

// passes reports whether a store that cannot be opened may be there later. What somebody has to correct is no
// reason to begin without it.
func passes(err error) bool {
	var parse *pgconn.ParseConfigError
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, hookonce.ErrSchemaNewer), errors.Is(err, hookonce.ErrSchemaMissing), errors.As(err, &parse),
		errors.Is(err, sqlite.ErrInUse), errors.Is(err, sqlitefile.ErrUnsafe), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission),
		errors.Is(err, errNoCells), errors.Is(err, cells.ErrNotThisCell), errors.Is(err, cells.ErrConflict), errors.Is(err, cells.ErrFirstMap), errors.Is(err, cells.ErrHasEvents):
		return false
	case errors.As(err, &refused):
		return slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(refused.Code, code) })
	}
	return true
}

// passing are the beginnings of what PostgreSQL answers while it cannot do what it is asked for,
// and could: it is going down or the statement took too long, there is no connection, there are no
// resources, others hold what is needed, or were given way to.
var passing = []string{"57", "08", "53", "55P03", "40001", "40P01"}

// earlyIngest serves sources that are observed, and asks the senders of all others to come again, in the way that each needs.
func (g *Gateway) earlyIngest(wired *wiring) http.Handler {
	const reason = "store"
	away, rejected := map[string]http.HandlerFunc{}, ingest.Rejected(g.opt.Registry)
	for _, s := range wired.plan.ingest.Sources {
		profile, refused, counted := s.Provider.Profile(), g.tally.Counter(s.Name, "", tally.Rejected(reason)), rejected.WithLabelValues(s.Name, reason)
		status := profile.Refusal(http.StatusServiceUnavailable, nil)
		away[s.Name] = func(w http.ResponseWriter, r *http.Request) {
			if profile.Takes(r.Method) {
				refused.Inc()
				counted.Inc()
			}
			notOpenAs(w, status)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := strings.CutPrefix(r.URL.Path, ingest.PathPrefix)
		name = strings.TrimSuffix(name, "/")
		if f := wired.watching.forwarders[name]; f != nil {
			f.ServeHTTP(w, r)
		} else if refuse := away[name]; refuse != nil {
			refuse(w, r)
		} else {
			notOpen(w, r)
		}
	})
}

// earlyOverview says where the overview looks that is shown before the store is there: at nothing of it.
func (g *Gateway) earlyOverview() overview.Options {
	return overview.Options{
		Fleet:   func(context.Context) (fleet.DestinationList, error) { return fleet.DestinationList{}, g.opening.why() },
		Recent:  g.tally.Recent,
		Sources: func() []overview.SourceState { return overviewSources(&g.wired.Load().plan) },
		Ready:   g.opening.why,
		Upkeep:  func() overview.Upkeep { return overview.Upkeep{} },
		Free:    func() int64 { return freeBytes(g.config().Store) },
		Config:  g.configFile(),
		Now:     g.opt.Now,
	}
}

// earlyQuestions answers how all stands, and what the sources are. What else is asked is asked of the store.
func (g *Gateway) earlyQuestions(early *overview.Overview) http.Handler {
	answered := api.New(api.Options{
		Overview: early.Snapshot, Sources: func() []api.Source { return apiSources(g.config()) },
		Version: g.opt.Version, Now: g.opt.Now, Logger: g.opt.strange,
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/", notOpen)
	for _, question := range []string{"/overview", "/sources", "/openapi.json"} {
		mux.Handle("GET "+api.Base+question, answered)
	}
	return mux
}

// notOpen asks everybody to come again.
func notOpen(w http.ResponseWriter, _ *http.Request) { notOpenAs(w, http.StatusServiceUnavailable) }

func notOpenAs(w http.ResponseWriter, status int) {
	p := problem.Unavailable.New("The store is away, and nothing can be accepted. Nothing is acknowledged: send it again.").As(status, 5*time.Second)
	p.Write(w)
}
