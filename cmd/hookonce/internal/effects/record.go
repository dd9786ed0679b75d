package effects

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/inspect"
)

// Record stores a report beside hookonce's own tables, where the dashboards and alerts find it. It has a connection of its own:
// that of the question can only read. What it needs are the tables, at their version, and the right to write into one.
func Record(ctx context.Context, store config.Store, q Question, r *Report, now time.Time) error {
	driver, dsn, dialect := "pgx", store.Single(), ddl.Postgres
	if store.Driver == config.SQLite {
		driver, dsn = "sqlite", "file:"+url.PathEscape(store.DSN)+"?mode=rw&_pragma=busy_timeout(5000)"
		dialect = ddl.SQLite
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := ddl.Check(ctx, db, dialect, q.nameIn(store)); err != nil {
		return err
	}
	tables, err := inspect.New(db, dialect, q.nameIn(store), time.Now)
	if err != nil {
		return err
	}
	if err := tables.Record(ctx, record(q, r, now)); err != nil {
		return fmt.Errorf("recording what was found: %w", advise(err))
	}
	return nil
}

// recordTime bounds all of it.
const recordTime = 10 * time.Second

// record is what is kept of a report.
func record(q Question, r *Report, now time.Time) hookonce.Reconciliation {
	kept := hookonce.Reconciliation{
		At: now.UTC(), Rows: r.Rows, Unidentified: r.Unidentified, Events: r.Events, Doubled: r.Doubled, Surplus: r.Surplus,
		Question: hookonce.ReconcileQuestion{
			Table: q.Table, EventColumn: q.Event, SourceColumn: q.Source, TimeColumn: q.Time, Where: q.Where, Source: q.Only, Lost: q.Lost,
		},
		Found: []hookonce.Reconciled{},
	}
	for _, o := range r.Offenders[:min(len(r.Offenders), hookonce.MaxReconciled)] {
		kept.Found = append(kept.Found, hookonce.Reconciled{Source: o.Source, Event: o.Event, Rows: o.Count, At: o.Last})
	}
	if r.Lost == nil {
		return kept
	}
	if kept.Fault = r.Lost.Fault; kept.Fault == "" {
		kept.Lost = &r.Lost.Count
	}
	for _, m := range r.Lost.Events[:min(len(r.Lost.Events), hookonce.MaxReconciled)] {
		kept.Found = append(kept.Found, hookonce.Reconciled{Source: m.Source, Event: m.Event, At: m.Done})
	}
	return kept
}
