package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
)

func newDestinationsCommand(w *env) *cobra.Command {
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

func newDestinationsListCommand(w *env) *cobra.Command {
	var admin adminFlags
	var all bool
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List destinations with their health, pause and backlog",
		Long: `List shows each destination as all gateways on the same database find it: its state is that of the one that
finds it worst, and waiting deliveries are counted wherever they are. What other gateways say is some seconds old.
With --all it also shows the gateways, and how each of them finds each destination.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list fleet.DestinationList
			if err := client.get(c.Context(), "/destinations", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printDestinations(w, &list, all)
		},
	}
	admin.declare(c)
	c.Flags().BoolVar(&all, "all", false, "show the gateways as well, and what each says")
	return c
}

func printDestinations(w *env, list *fleet.DestinationList, all bool) error {
	t := newTable(w, "", "NAME | STATE | PENDING | PROCESSING | FAILED | DEAD | OLDEST OPEN | URL | WHY PAUSED")
	for _, d := range list.Destinations {
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
	if all {
		return printFleet(w, t, list)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range list.Gateways {
		if g.Gone {
			fmt.Fprintf(w.out, "The gateway %s is gone: it was last heard of at %s, and did not stop in order.\n", clean(host(&g)), clock(g.Seen))
		}
	}
	return nil
}

// host names a gateway for people.
func host(g *fleet.Gateway) string { return fmt.Sprintf("%s/%d", g.Host, g.PID) }

// printFleet shows the destinations, the gateways, and how each of them finds each destination.
func printFleet(w *env, destinations table, list *fleet.DestinationList) error {
	gateways := newTable(w, "\n", "GATEWAY | STATE | VERSION | SINCE | LAST HEARD OF")
	names := map[string]string{}
	for _, g := range list.Gateways {
		names[g.ID] = host(&g)
		state := "running"
		if g.Gone {
			state = "gone"
		}
		gateways.row("", names[g.ID], state, g.Version, clock(g.Since), clock(g.Seen))
	}
	stands := newTable(w, "\n", "DESTINATION | GATEWAY | HEALTH | WAITING | UNDER WAY")
	for _, d := range list.Destinations {
		for _, s := range d.Gateways {
			stands.row("", d.Name, names[s.Gateway], health(&s.Health), s.Waiting, s.Underway)
		}
	}
	return flush(destinations, gateways, stands)
}

// standing is the state of a destination in a word or two, and for how many of its gateways it is so.
func standing(d *fleet.Destination) string {
	switch {
	case d.Pause != nil:
		return "paused"
	case !d.Configured:
		return "not configured"
	}
	same := 0
	for _, s := range d.Gateways {
		if s.Health.State == d.Health.State {
			same++
		}
	}
	if same < len(d.Gateways) {
		return fmt.Sprintf("%s, in %d of %d gateways", health(d.Health), same, len(d.Gateways))
	}
	return health(d.Health)
}

// health is how a destination stands in a word or two.
func health(h *fleet.Health) string {
	switch h.State {
	case "ill":
		if h.Probe != nil && !h.Probe.After(time.Now()) {
			return "ill since " + clockOf(h.Since) + ", tried again with the next event: " + h.Error
		}
		return "ill since " + clockOf(h.Since) + ", next probe " + clockOf(h.Probe) + ": " + h.Error
	case "recovering":
		return fmt.Sprintf("recovering, %d at once", h.Limit)
	}
	return "delivering"
}

// newPauseCommand returns pause or resume.
func newPauseCommand(w *env, verb, short string) *cobra.Command {
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
				return &usageError{c.CommandPath(), errors.New("say why with --reason; it is kept in the audit log")}
			}
			var done api.PauseResult
			body := map[string]string{"reason": reason}
			if err := client.call(c.Context(), http.MethodPost, "/destinations/"+segment(args[0])+"/"+verb, body, &done); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, done)
			}
			say := "%s is delivering.\n"
			switch {
			case done.Paused && done.Changed:
				say = "%s is paused.\n"
			case done.Paused:
				say = "%s is paused already.\n"
			case !done.Changed:
				say = "%s was not paused.\n"
			}
			_, err = fmt.Fprintf(w.out, say, clean(done.Name))
			return err
		},
	}
	admin.declare(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log, as a `text`")
	return c
}
