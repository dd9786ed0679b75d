package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

func newReconcileMissingCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "missing SOURCE [flags]",
		Short: "List what never arrived at a source, as gateways found",
		Long: `Missing asks a running gateway, on its admin listener, for the events that gateways found missing when they compared the
source by themselves (reconcile: {every: 15m}). An event is listed until it is on record, whoever brings it, until
somebody dismisses it, or until the sender's list does not go back to it any more. What the sender was asked to send
again is listed once it has not come for ten minutes. Of a source that is not compared it says so, why, and what to
do.`,
		Args: oneArg("SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.MissingList
			if err := client.get(c.Context(), "/sources/"+segment(args[0])+"/missing", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printMissing(w, args[0], &list)
		},
	}
	admin.declare(c)
	return c
}

func printMissing(w *env, source string, list *api.MissingList) error {
	if list.NotCompared != "" {
		fmt.Fprintf(w.out, "Gateways do not compare %s with what its sender made, so nobody knows what is missing: %s.\n", clean(source), clean(list.NotCompared))
		if len(list.Events) > 0 || list.Beyond > 0 {
			fmt.Fprintln(w.out, "This was found before:")
		}
	}
	if len(list.Events) == 0 && list.Beyond == 0 {
		if list.NotCompared != "" {
			return nil
		}
		text := "No gateway has compared " + clean(source) + " with what its sender made yet, so nobody knows what is missing; hookonce alerts says so if that lasts."
		if list.Through != nil {
			text = "Nothing is missing of what the sender made until " + clockOf(list.Through) + ", except what the audit log names as not compared."
		}
		_, err := fmt.Fprintln(w.out, text)
		return err
	}
	t := newTable(w, "", "HAPPENED | KEY | TYPE | FOUND | ASKED AGAIN | WHY")
	var oldest, newest time.Time
	for i := range list.Events {
		m := &list.Events[i]
		name, happened, asked := m.Key, "", ""
		if name == "" {
			name = m.Entry + " (without a key)"
		}
		at := m.Found
		if m.Happened != nil {
			at, happened = *m.Happened, clock(*m.Happened)
		}
		if m.Asked != nil {
			asked = clock(*m.Asked)
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		if at.After(newest) {
			newest = at
		}
		t.row("", happened, name, m.Type, clock(m.Found), asked, m.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	when := "TIME"
	if !oldest.IsZero() {
		when = oldest.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	if list.Beyond > 0 {
		fmt.Fprintf(w.out, "and %d more at least\n", list.Beyond)
	} else { // what was made later is none of them, and may be somebody else's
		when += " --until " + newest.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w.out, "\nRecover them:  hookonce reconcile --source %s --since %s (--ingest or --redeliver)\nOr dismiss:    hookonce reconcile dismiss %s KEY --reason TEXT\n", clean(source), when, clean(source))
	return err
}

func newReconcileDismissCommand(w *env) *cobra.Command {
	var admin adminFlags
	var all bool
	var reason string
	c := &cobra.Command{
		Use:   "dismiss SOURCE (KEY... | --all) --reason TEXT [flags]",
		Short: "Say that what never arrived need not be told any more",
		Long: `Dismiss ends that events of a source are told as missing, by their keys, or all that are listed. They are not found
again. Nothing else changes: a webhook that comes after all is an event like any other. Who did it, and why, is on the
audit log, with the first 20 keys.

With --all it asks for the list first, and says how many stand there. What was found since, or in the minute before,
stands, and so does what the list does not show yet because the sender was just asked for it.`,
		Args: someArgs("SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return &usageError{c.CommandPath(), fmt.Errorf("name the keys of events after the source, or write --all")}
			}
			if err := needReason(c, reason); err != nil {
				return err
			}
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var done api.Dismissed
			body := api.Dismiss{Keys: args[1:], All: all, Reason: reason}
			var listed int64
			if all {
				var list api.MissingList
				if err := client.get(c.Context(), "/sources/"+segment(args[0])+"/missing", nil, &list); err != nil {
					return err
				}
				body.FoundBefore, listed = list.FoundBefore, int64(len(list.Events))+list.Beyond
				if !admin.json {
					fmt.Fprintf(w.out, "%d are missing at %s.\n", listed, clean(args[0]))
				}
			}
			if err := client.call(c.Context(), http.MethodPost, "/sources/"+segment(args[0])+"/missing/dismiss", body, &done); err != nil {
				return err
			}
			if done.Dismissed == 0 && !admin.json {
				wrong := "nothing of that is missing at %[1]s; hookonce reconcile missing %[1]s lists what is"
				if listed > 0 {
					wrong = "what is missing at %[1]s was found a moment ago; look at it with hookonce reconcile missing %[1]s, and dismiss it in a minute"
				}
				return fmt.Errorf(wrong, clean(args[0]))
			}
			return admin.done(w, done, "%d dismissed.\n", done.Dismissed)
		},
	}
	admin.declare(c)
	c.Flags().BoolVar(&all, "all", false, "dismiss all that is listed as missing at the source")
	reasonFlag(c.Flags(), &reason)
	return c
}
