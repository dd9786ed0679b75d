package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/effects"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

func newReconcileEffectsCommand(w *env) *cobra.Command {
	var q effects.Question
	var asJSON, record bool
	c := &cobra.Command{
		Use:   "effects --store DSN --table NAME --event-column NAME [flags]",
		Short: "Find side effects in your own table that happened twice, or never",
		Long: `Reconcile effects counts the rows of one of your tables by the event that they belong to, and lists the events
that have more than one: payments that were booked twice. With --lost it also lists events that are
on record as done and have no row. The question is put in a transaction that can only read.

What was found is recorded beside hookonce's own tables in the same database, where the dashboards and
alerts find it: the numbers, and up to 100 of the events. Where that cannot be done, as on a standby or
without the right to write, a line on stderr says so, and nothing else changes; --record=false leaves it.

Rows whose event column is null or empty cannot be judged, and are counted apart. Names are as in
SQL: Orders means orders, and "Orders", with its quotes, means itself.

Exit status: 0 nothing was found, 1 something was, or the question could not be answered, 2 wrong usage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := q.Check(); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			q.Schema = cfg.Schema
			return runReconcileEffects(w, c, cfg.Store, q, asJSON, record)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&q.Table, "table", "", "`name` of the table with one row for each effect; may have a schema")
	f.StringVar(&q.Event, "event-column", "", "`name` of the column with the event's id")
	f.StringVar(&q.Source, "source-column", "", "`name` of the column with the event's source, if equal ids of two sources are two events")
	f.StringVar(&q.Time, "time-column", "", "`name` of the column that says when the effect happened")
	f.StringVar(&q.Where, "where", "", "`condition` in SQL for the rows that count")
	f.StringVar(&q.Only, "source", "", "the one `source` to look at")
	f.StringVar(&q.Lost, "lost", "", "look for events without a row `in` claims (library, SQL API) or events (gateway); needs --source or --source-column")
	f.Lookup("lost").NoOptDefVal = effects.Claims
	f.IntVar(&q.Limit, "limit", 20, "largest `number` of events to list")
	f.DurationVar(&q.Timeout, "timeout", time.Minute, "longest `time` that one query may take")
	f.BoolVar(&record, "record", true, "record what was found, for the dashboards and alerts")
	f.BoolVar(&asJSON, "json", false, "write the report as JSON")
	configFlag(f)
	config.StoreFlags(f)
	return c
}

func runReconcileEffects(w *env, c *cobra.Command, store config.Store, q effects.Question, asJSON, record bool) error {
	if q.Limit < 0 || q.Timeout <= 0 {
		return &usageError{c.CommandPath(), fmt.Errorf("--limit cannot be negative, and --timeout must be positive")}
	}
	r, err := effects.Ask(c.Context(), store, q)
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &connect):
		return gateway.Explain(store, err)
	case err != nil:
		return err
	}
	if record {
		if err := effects.Record(c.Context(), store, q, r, time.Now()); err != nil {
			fmt.Fprintf(w.err, "%s: this is not recorded, so no dashboard shows it (--record=false does not try to): %v\n", q.Table, err)
		}
	}
	if asJSON {
		err = printJSON(w, r)
	} else {
		err = printReconciliation(w, q, r)
	}
	switch {
	case err != nil:
		return err
	case r.Clean():
		return nil
	case r.Lost == nil:
		return fmt.Errorf("%s: %d events have more than one effect", q.Table, r.Doubled)
	case r.Lost.Fault != "":
		return fmt.Errorf("%s: %d events have more than one effect; whether any have none is not known: %s", q.Table, r.Doubled, r.Lost.Fault)
	}
	return fmt.Errorf("%s: %d events have more than one effect, %d have none", q.Table, r.Doubled, r.Lost.Count)
}

// printReconciliation writes the report for people.
func printReconciliation(w *env, q effects.Question, r *effects.Report) error {
	fmt.Fprintf(w.out, "%s: %d rows for %d events; %d events have more than one row, %d rows too many.\n",
		q.Table, r.Rows, r.Events, r.Doubled, r.Surplus)
	if r.Unidentified > 0 {
		fmt.Fprintf(w.out, "%d rows have no %s and cannot be judged.\n", r.Unidentified, q.Event)
	}
	if len(r.Offenders) > 0 {
		t := newTable(w, "", "COUNT | EVENT | SOURCE | FIRST | LAST")
		for _, o := range r.Offenders {
			t.row("", o.Count, o.Event, o.Source, o.First, o.Last)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		printRest(w, r.Doubled, len(r.Offenders))
	}
	if r.Lost == nil || r.Lost.Fault != "" { // which is the error
		return nil
	}
	return printLost(w, r.Lost)
}

func printLost(w *env, l *effects.Lost) error {
	fmt.Fprintf(w.out, "Of %d events that are done, %d have no row.\n", l.Done, l.Count)
	if l.Hidden > 0 {
		fmt.Fprintf(w.out, "%d keys are stored as a hash and cannot be looked for.\n", l.Hidden)
	}
	if len(l.Events) == 0 {
		return nil
	}
	t := newTable(w, "", "EVENT | SOURCE | DONE")
	for _, m := range l.Events {
		t.row("", m.Event, m.Source, m.Done)
	}
	err := t.Flush()
	printRest(w, l.Count, len(l.Events))
	return err
}

func printRest(w *env, all int64, shown int) {
	if rest := all - int64(shown); rest > 0 {
		fmt.Fprintf(w.out, "... and %d more; see --limit\n", rest)
	}
}
