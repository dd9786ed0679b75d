package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

func newDestinationsCommand(w *world) *cobra.Command {
	c := &cobra.Command{
		Use:   "destinations",
		Short: "List, pause and resume the destinations of a running gateway",
		Long: `Destinations asks a running gateway, on its admin listener, how its destinations stand, and has it
deliver nothing to one of them for a while. A pause holds for all gateways on the same database, and
until somebody ends it.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(
		newDestinationsListCommand(w),
		newPauseCommand(w, "pause", "Deliver nothing to a destination until it is resumed"),
		newPauseCommand(w, "resume", "Deliver to a destination again"),
	)
	return c
}

func newDestinationsListCommand(w *world) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List destinations with their health, pause and backlog",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.DestinationList
			if err := client.get(c.Context(), "/destinations", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printDestinations(w, list.Destinations)
		},
	}
	admin.declare(c)
	return c
}

func printDestinations(w *world, all []api.Destination) error {
	t := newTable(w, "", "NAME | STATE | PENDING | PROCESSING | FAILED | DEAD | OLDEST OPEN | URL | WHY PAUSED")
	for _, d := range all {
		count, oldest := map[string]int64{}, time.Time{}
		for _, o := range d.Open {
			count[o.State] = o.Count
			if o.State != "dead" && (oldest.IsZero() || o.Oldest.Before(oldest)) {
				oldest = o.Oldest
			}
		}
		why := ""
		if d.Pause != nil {
			why = d.Pause.By + ": " + d.Pause.Reason
		}
		t.row("", d.Name, standing(&d), count["pending"], count["processing"], count["failed"], count["dead"], clock(oldest), d.URL, why)
	}
	return t.Flush()
}

// standing is the state of a destination in a word or two.
func standing(d *api.Destination) string {
	switch {
	case d.Pause != nil:
		return "paused"
	case !d.Configured:
		return "not configured"
	case d.Health.State == "ill":
		return "ill since " + clockOf(d.Health.Since) + ", next probe " + clockOf(d.Health.Probe) + ": " + d.Health.Error
	case d.Health.State == "recovering":
		return fmt.Sprintf("recovering, %d at once", d.Health.Limit)
	}
	return "delivering"
}

// newPauseCommand returns pause or resume.
func newPauseCommand(w *world, verb, short string) *cobra.Command {
	var admin adminFlags
	var reason string
	c := &cobra.Command{
		Use:   verb + " NAME --reason TEXT [flags]",
		Short: short,
		Args:  oneArg("name"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if reason == "" {
				return &usageError{c.CommandPath(), errors.New("say why with --reason; it is kept in the audit record")}
			}
			var done api.PauseResult
			body := map[string]string{"reason": reason}
			if err := client.call(c.Context(), http.MethodPost, "/destinations/"+segment(args[0])+"/"+verb, body, &done); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, done)
			}
			state := map[bool]string{true: "paused", false: "delivering"}[done.Paused]
			if !done.Changed {
				state += " already"
			}
			_, err = fmt.Fprintf(w.out, "%s is %s.\n", clean(done.Name), state)
			return err
		},
	}
	admin.declare(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit record, as a `text`")
	return c
}
