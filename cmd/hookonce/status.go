package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
)

// errPages is why the exit status is 1 although all was told.
var errPages = errors.New("something pages")

func newStatusCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "status [flags]",
		Short: "Say in words what is wrong with a running gateway, and what to do",
		Long: `Status asks a running gateway how all stands, and says what is wrong: in a sentence first, with the next step
below it. It costs the gateway next to nothing, and is answered while its store is away.

The exit status is 0 if nothing pages, 1 if something does, and 2 if the gateway cannot be asked.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var o api.Overview
			if err := client.get(c.Context(), "/overview", nil, &o); err != nil {
				return &unaskedError{err}
			}
			if admin.json {
				err = printJSON(w, o)
			} else {
				err = printStatus(w, &o)
			}
			if err == nil && !o.Verdict.Healthy {
				err = &loggedError{errPages}
			}
			return err
		},
	}
	admin.declare(c)
	return c
}

// unaskedError is why a gateway could not be asked. Its exit status is that of wrong usage.
type unaskedError struct{ error }

func (e *unaskedError) Unwrap() error { return e.error }

func printStatus(w *env, o *api.Overview) error {
	v := &o.Verdict
	fmt.Fprintf(w.out, "%s\n\n", clean(v.Headline))
	for _, a := range []struct {
		question string
		answer   alert.Answer
	}{{"Are senders refused?", v.Refused}, {"Is anything lost?", v.Lost}, {"Is anything doubled?", v.Doubled}} {
		fmt.Fprintf(w.out, "%-21s %s\n", a.question, clean(a.answer.Text))
	}
	for _, a := range v.Alerts {
		follows := ""
		if a.Cause != "" {
			follows = " (follows from " + a.Cause + ")"
		}
		fmt.Fprintf(w.out, "\n%s: %s%s\n  %s: %s\n", a.Severity, clean(a.Headline), clean(follows), clean(a.Action.Label),
			clean(cmp.Or(a.Action.Command, a.Action.Place)))
	}
	n := &o.Numbers
	_, err := fmt.Fprintf(w.out, "\nIn the last 24 hours %d of %d first attempts failed, and %d of %d events came again.\nThe journal has %d events; yesterday %d were stored and %d deleted.\n",
		n.First.FirstFailed, n.First.First, n.Reseen, n.Events, n.Rows, n.StoredYesterday, n.PurgedYesterday)
	return err
}
