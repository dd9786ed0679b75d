package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/reconcile"
)

const reconcileHelp = `Reconcile asks a sender's API which events it made, and lists those that never arrived at a source: what
is delivered at least once is also delivered never. Of each it says what the sender says of the delivery. What is
younger than the source's reconcile.lag may be under way, and is only counted.

The source's configuration says how the API is asked: reconcile: {token: "env:NAME"}, and with: what else it needs.
'hookonce providers show NAME' tells which right the token needs, and how far back the list goes.

--redeliver has the sender send again what is missing: it comes signed, as the first time. --ingest stores it as the
list has it, under the same key, so that a webhook that comes late is a duplicate; gateways on the store deliver it.
Both can be broken off and done again without harm.

What the store holds is looked up there. The file of SQLite belongs to the gateway that runs: that one asks the sender
then, with the token of its own configuration, does what is wanted, and tells what came of it. It needs the role
operator: an operator's token of the configuration, or HOOKONCE_ADMIN_TOKEN. Why something that is missing was refused,
if it came, is known to gateways that run. Both are asked of the one that the configuration's admin names, or of
--admin.

What is on record under another source of the same provider is left alone: the source may have been renamed. If that
was before this one had any event, nothing is done at all. What was made while gateways had the source observed (mode:
observe) is left alone as well: it is not on record, and was delivered past them. Of a source that was never compared
before nobody knows when that was: choose --since after it. --really has it sent again or stored all the same.

With --provider the question is put for a program that uses the library, without a gateway: --store has its claims,
--source is the name that it claims under, and --token is that of the sender's API. It also lists what arrived and is
not done, with the error. What is missing can be sent again, but not stored: only the program can carry it out.

Exit status: 0 nothing is missing, or all of it was recovered; 1 something is, or the question could not be
answered, also where the sender's list does not go back to --since; 2 wrong usage.`

const reconcileExample = `  hookonce reconcile --source billing --since 48h
  hookonce reconcile --source billing --since 2026-11-21 --until 2026-11-22 --redeliver
  hookonce reconcile --source billing --since 7d --ingest --json
  hookonce reconcile --provider github --store postgres://app@db/shop --source repo --token env:GITHUB_TOKEN \
      --with owner=acme --with repo=shop --with hook=123 --since 48h --redeliver`

func newReconcileCommand(w *env) *cobra.Command {
	var ask gateway.Comparison
	var since, until string
	var asJSON bool
	var asked askedGateways
	var of claimsOf
	c := &cobra.Command{
		Use:     "reconcile --source NAME --since TIME [flags]",
		Short:   "Find events that a sender made and that never arrived",
		Long:    reconcileHelp,
		Example: reconcileExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := readComparison(&ask, since, until, time.Now()); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if of.chosen() {
				return of.run(w, c, &ask, asJSON)
			}
			if err := of.unused(c.Flags()); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, _, err := loadConfig(w, c.Flags())
			if err != nil {
				return err
			}
			if err := needSources(cfg); err != nil {
				return err
			}
			gateways, err := asked.clients(w, cfg)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			ask.Refused = refusalsOf(gateways)
			return runReconcile(w, c, cfg, gateways, ask, asJSON)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&ask.Source, "source", "", "`name` of the source")
	f.StringVar(&since, "since", "", "look at events made since this `time`: 48h (ago), 7d, 2026-11-21, or 2026-11-21T12:00:00Z")
	f.StringVar(&until, "until", "", "and until this `time`; now if not set")
	f.BoolVar(&ask.Redeliver, "redeliver", false, "have the sender send again what is missing")
	f.BoolVar(&ask.Ingest, "ingest", false, "store what is missing as the list has it")
	f.BoolVar(&ask.Really, "really", false, "do so although another source has the same events on record, the source was observed when they were made, or nobody knows when that was")
	f.StringArrayVar(&asked.addresses, "admin", nil, "`URL` of the admin listener of a gateway to ask what was refused, or to have compare with SQLite; repeatable; "+config.AdminURLVariable+" or the configuration's admin if not set")
	f.BoolVar(&asJSON, "json", false, "write the report as JSON")
	of.declare(f)
	configFlag(f)
	config.StoreFlags(f)
	c.AddCommand(newReconcileMissingCommand(w), newReconcileDismissCommand(w), newReconcileEffectsCommand(w))
	return c
}

// readComparison completes what is asked for, or says which flag is wrong.
func readComparison(ask *gateway.Comparison, since, until string, now time.Time) (err error) {
	switch {
	case ask.Source == "":
		return errors.New("name the source with --source")
	case since == "":
		return errors.New("say with --since how far back to look, such as 48h")
	case ask.Redeliver && ask.Ingest:
		return errors.New("--redeliver and --ingest exclude each other: what the sender sends again would be stored before it comes")
	}
	if ask.Since, err = moment("since", since, now); err != nil {
		return err
	}
	if ask.Until, err = moment("until", until, now); err != nil {
		return err
	}
	if ask.Since.After(now) || !ask.Until.IsZero() && ask.Until.Before(ask.Since) {
		return errors.New("--since: it must lie before --until, and in the past")
	}
	return nil
}

func runReconcile(w *env, c *cobra.Command, cfg *config.Config, gateways []*adminClient, ask gateway.Comparison, asJSON bool) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	b, err := gateway.OpenBeside(ctx, cfg, gateway.Options{})
	switch {
	case errors.Is(err, gateway.ErrInUse):
		return reconcileThere(ctx, w, gateways, &ask, asJSON)
	case err != nil:
		return err
	}
	defer b.Close()
	return tellReconciled(ctx, w, ask.Since, asJSON, func(show func(reconcile.Progress)) (*reconcile.Report, error) {
		ask.Progress = show
		return b.Reconcile(ctx, ask)
	})
}

// moments is how much later than what was asked for a list may begin: where --since is as long ago as the list goes back, the
// sender is asked some moments after that.
const moments = time.Minute

// tellReconciled compares, shows how far that is, and writes what was found.
func tellReconciled(ctx context.Context, w *env, since time.Time, asJSON bool, compare func(func(reconcile.Progress)) (*reconcile.Report, error)) error {
	progress := newProgress(w)
	r, err := compare(progress.show)
	progress.end()
	if r == nil {
		return err
	}
	if asJSON {
		if failed := printJSON(w, r); failed != nil {
			return failed
		}
	} else {
		printReconciled(w, r, err != nil)
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("it was broken off; what is said above was found and done until then")
	case err != nil:
		return err
	case r.Missing+len(r.Undelivered) > r.Redelivered+r.Stored+r.Arrived:
		return errors.New("events are missing")
	case r.Cut && r.Since.Sub(since) > moments:
		return r.BeforeList()
	}
	return nil
}

// progress shows on a terminal how far a run is.
type progress struct {
	w    *env
	on   bool
	last int // characters of the line
}

func newProgress(w *env) *progress { return &progress{w: w, on: isTerminal(w.err)} }

func (p *progress) show(now reconcile.Progress) {
	if !p.on {
		return
	}
	text := fmt.Sprintf("%d events on %d pages, %d not on record", now.Listed, now.Pages, now.Missing)
	if !now.At.IsZero() {
		text += ", at " + clock(now.At)
	}
	if now.Todo > 0 {
		text += fmt.Sprintf("; %d of %d done", now.Done, now.Todo)
	}
	fmt.Fprintf(p.w.err, "\r%-*s", p.last, text)
	p.last = len(text)
}

// end leaves an empty line.
func (p *progress) end() {
	if p.last > 0 {
		fmt.Fprintf(p.w.err, "\r%s\r", strings.Repeat(" ", p.last))
	}
}

// printReconciled writes a report for people. Of a run that was broken off before anything was listed there are no counts: they
// would say that nothing is missing.
func printReconciled(w *env, r *reconcile.Report, brokenOff bool) {
	out := w.out
	fmt.Fprintf(out, "%s, as %s lists it, from %s to %s\n", clean(r.Source), clean(r.Provider), clock(r.Since), clock(r.Until))
	if r.Cut {
		fmt.Fprintf(out, "  The list does not go back further.\n")
	}
	switch {
	case brokenOff && r.Listed == 0:
		fmt.Fprintf(out, "  Nothing was listed, so nobody can say what is missing.\n")
		return
	case brokenOff:
		fmt.Fprintf(out, "  It did not come to its end, so the counts may be too low: the reason is said last.\n")
	case r.Listed == 0:
		fmt.Fprintf(out, "  The sender lists no events of that time. If it made some, the token is of another account, or environment.\n")
	}
	for _, count := range []struct {
		name  string
		n     int
		about string
	}{
		{"listed", r.Listed, ""},
		{"on record", r.Known, ""},
		{"not done", r.NotDone, "of them arrived and are not done"},
		{"missing", r.Missing, ""},
		{"refused", r.Refused, "of them came and were refused"},
		{"young", r.Young, "may be under way"},
		{"forgotten", r.Forgotten, "are so old that they may have come and been forgotten"},
		{"other", r.Other, "are of types that the source does not want"},
		{"unkeyed", r.Unkeyed, "have no key, so that nobody can say whether they arrived"},
		{"redelivered", r.Redelivered, "are sent again by the sender"},
		{"stored", r.Stored, "were stored and are delivered"},
		{"arrived", r.Arrived, "came by themselves meanwhile"},
		{"elsewhere", r.Elsewhere, "belong to another cell: compare there"},
		{"held", r.Held, "were left alone, for the reason beside each"},
		{"failed", r.Failed, "could not be recovered"},
	} {
		if count.n > 0 || count.about == "" {
			fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-12s %d %s", count.name, count.n, count.about), " "))
		}
	}
	for _, list := range []struct {
		title  string
		events []reconcile.Missing
	}{{"Never arrived:", r.Events}, {"Without a key, and not delivered, as the sender says:", r.Undelivered}} {
		if len(list.events) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", list.title)
		t := newTable(w, "  ", "time | key | type | sender says | here")
		for _, m := range list.events {
			here := strings.TrimSpace(strings.Join([]string{string(m.Outcome), m.Why}, " "))
			if m.Refused != "" {
				here = strings.TrimSpace("refused: " + m.Refused + " " + here)
			}
			t.row("  ", clock(m.Time), m.Key, m.Type, m.Delivery, here)
		}
		_ = t.Flush()
	}
	if r.RefusedUnknown != "" {
		fmt.Fprintf(out, "\nWhich of them came and were refused is not known: %s\n", clean(r.RefusedUnknown))
	}
	printUnfinished(w, r)
	if left := r.Missing - len(r.Events); left > 0 {
		fmt.Fprintf(out, "  and %d more\n", left)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Failures)) {
		fmt.Fprintf(out, "\n%d failed: %s\n", r.Failures[why], clean(why))
	}
}

// printUnfinished lists what arrived and is not done.
func printUnfinished(w *env, r *reconcile.Report) {
	if len(r.Unfinished) == 0 {
		return
	}
	fmt.Fprintf(w.out, "\nArrived, and not done:\n")
	t := newTable(w, "  ", "time | key | type | state | error")
	for _, u := range r.Unfinished {
		t.row("  ", clock(u.Time), u.Key, u.Type, u.Status, u.Error)
	}
	_ = t.Flush()
	if left := r.NotDone - len(r.Unfinished); left > 0 {
		fmt.Fprintf(w.out, "  and %d more\n", left)
	}
}
