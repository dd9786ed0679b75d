package gateway

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dashboard"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/inspect"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/sqlstore"
)

// library looks at the library's tables in the journal's database, for people and for the overview. It has one connection of its
// own: the overview asks once a minute what was reconciled, and between its questions the connection is closed.
type library struct {
	db    *sql.DB
	store *sqlstore.Store
}

func openLibrary(in storePlan, store *journalStore, o Options) (l library, err error) {
	dialect := sqlstore.SQLite
	if o.Store != nil {
		return l, nil
	}
	if in.Driver == config.Postgres {
		dialect = sqlstore.Postgres
		l.db, err = sql.Open("pgx", in.Single())
	} else {
		l.db, err = store.Store.(*sqlite.Store).DB()
	}
	if err != nil {
		return l, err
	}
	l.db.SetMaxOpenConns(1)
	l.db.SetConnMaxIdleTime(libraryIdle)
	opts := []sqlstore.Option{sqlstore.WithClock(o.Now)}
	if dialect == sqlstore.Postgres && in.schema != "" {
		opts = append(opts, sqlstore.WithSchema(in.schema))
	}
	l.store = sqlstore.New(l.db, dialect, opts...)
	return l, nil
}

// libraryIdle is how long the connection is kept after a question.
const libraryIdle = 15 * time.Second

func (l library) close() error {
	if l.db == nil {
		return nil
	}
	return l.db.Close()
}

// pages are those of the library's tables, in the gateway's dashboard: whoever was let in there may look, and operators may act.
// What they do is in the audit log before it is done.
func (l library) pages(o Options, record func(context.Context, journal.Audit) error) http.Handler {
	return dashboard.Handler(l.store, func(r *http.Request) (string, bool) {
		v := api.VisitorOf(r.Context())
		return v.Name, v.Name != ""
	}, dashboard.WithActions(func(r *http.Request) bool { return api.VisitorOf(r.Context()).Role == api.Operator }),
		dashboard.WithRecord(func(ctx context.Context, c dashboard.Change) error {
			return record(ctx, journal.Audit{At: o.Now(), By: c.By, Reason: c.Reason, Action: journal.Action(c.Action), Filter: c.What})
		}),
		dashboard.WithHome("Gateway", "/"), dashboard.WithVersion(o.Version), dashboard.WithClock(o.Now), dashboard.WithLogger(o.Logger))
}

// reconciled returns what `hookonce reconcile effects` found, the latest result of each question.
func (l library) reconciled(ctx context.Context) (all []overview.Reconciled, err error) {
	if l.store == nil {
		return nil, nil
	}
	found, err := inspect.Latest(ctx, l.store.Reconciliations)
	for _, r := range found {
		o := overview.Reconciled{At: r.At, Until: inspect.Until(r), Table: r.Question.Table, Doubled: r.Doubled, Surplus: r.Surplus, Lost: r.Lost, Command: reconcileAgain(r.Question)}
		if r.Doubled > 0 && len(r.Found) > 0 {
			o.Sample = r.Found[0].Event
		}
		all = append(all, o)
	}
	return all, err
}

// reconcileAgain is the command that puts a question again.
func reconcileAgain(q hookonce.ReconcileQuestion) string {
	words := []string{"hookonce reconcile effects"}
	for _, f := range q.Flags() {
		words = append(words, frame.Quoted(f))
	}
	return strings.Join(words, " ")
}
