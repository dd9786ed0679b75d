package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

func newFailuresCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "failures [flags]",
		Short: "Show what failed, grouped by destination and kind of error",
		Long: `Failures asks a running gateway, on its admin listener, what is failed or dead in its store, and shows it
in groups: by destination, kind of error, and the status of the answers. Of each group it says how many deliveries
there are, since when, three samples, and the command that has exactly these begin again, which only counts
until --dry-run is replaced by --yes. Below are groups that failed in the last 24 hours and have nothing open.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.FailureList
			if err := client.get(c.Context(), "/failures", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printFailures(w, &list)
		},
	}
	admin.declare(c)
	return c
}

func printFailures(w *env, list *api.FailureList) error {
	if len(list.Open) == 0 {
		fmt.Fprintln(w.out, "Nothing is failed or dead.")
	}
	for i := range list.Open {
		g := &list.Open[i]
		fmt.Fprintf(w.out, "%s: %s, %s deliveries, %d of them dead, since %s, last at %s\n",
			clean(g.Destination), failureText(g), countText(g), g.Dead, clock(g.Since), clock(g.Latest))
		t := newTable(w, "  ", "EVENT | SOURCE | KEY | TYPE | STATE | TRIED AT | ANSWER")
		for _, s := range g.Samples {
			t.row("  ", s.ID, s.Source, s.Key, s.Type, s.State, clockOf(s.Started), cut(clean(s.Answer), 60))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(w.out, "  hookonce events replay%s --reason TEXT --dry-run\n\n", failureFlags(g))
	}
	if len(list.Resolved) > 0 {
		t := newTable(w, "", "RESOLVED AT | ERROR | ATTEMPTS | FIRST | LAST")
		for i := range list.Resolved {
			g := &list.Resolved[i]
			t.row("", g.Destination, failureText(g), countText(g), clock(g.Since), clock(g.Latest))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if list.More {
		fmt.Fprintln(w.err, "A destination has more groups, which are left out.")
	}
	return nil
}

// failureText says why a group failed.
func failureText(g *api.FailureGroup) string {
	if g.Text != "" {
		return clean(g.Text)
	}
	return clean(g.Kind)
}

func countText(g *api.FailureGroup) string {
	if g.AtLeast {
		return fmt.Sprintf("at least %d", g.Count)
	}
	return strconv.FormatInt(g.Count, 10)
}

// failureFlags are those that choose a group and nothing else.
func failureFlags(g *api.FailureGroup) string {
	flags := " --destination " + clean(g.Destination) + " --error " + clean(g.Kind)
	if g.Status != 0 {
		flags += " --status " + strconv.Itoa(g.Status)
	}
	return flags
}
