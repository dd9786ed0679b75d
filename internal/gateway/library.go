package gateway

import (
	"context"
	"database/sql"
	"errors"
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

// library looks at the library's tables in the journal's database: for people, and once a minute for the overview, which has a
// connection of its own, or people who look at pages during trouble would have it not know what was reconciled. Between questions
// the connections are closed.
type library struct {
	db, overviewDB  *sql.DB
	store, overview *sqlstore.Store // nil: the journal is not in a database
}

func openLibrary(in storePlan, store *journalStore, o Options) (l library, err error) {
	if o.Store != nil {
		return l, nil
	}
	dialect, open := sqlstore.SQLite, func() (*sql.DB, error) { return store.Store.(*sqlite.Store).DB() }
	opts := []sqlstore.Option{sqlstore.WithClock(o.Now)}
	if in.Driver == config.Postgres {
		dialect, open = sqlstore.Postgres, func() (*sql.DB, error) { return sql.Open("pgx", in.Single()) }
		if in.schema != "" {
			opts = append(opts, sqlstore.WithSchema(in.schema))
		}
	}
	single := func() (*sql.DB, error) {
		db, err := open()
		if err == nil {
			db.SetMaxOpenConns(1)
			db.SetConnMaxIdleTime(libraryIdle)
		}
		return db, err
	}
	if l.db, err = single(); err != nil {
		return l, err
	}
	if l.overviewDB, err = single(); err != nil {
		return l, err
	}
	l.store, l.overview = sqlstore.New(l.db, dialect, opts...), sqlstore.New(l.overviewDB, dialect, opts...)
	return l, nil
}

// libraryIdle is how long a connection is kept after a question.
const libraryIdle = 15 * time.Second

func (l library) close() (err error) {
	for _, db := range []*sql.DB{l.db, l.overviewDB} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
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
	if l.overview == nil {
		return nil, nil
	}
	found, err := inspect.Latest(ctx, l.overview.Reconciliations)
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
