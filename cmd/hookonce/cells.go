package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

func newCellsCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "cells",
		Short: "Look at the cells that events are divided among, and give up one that is lost",
		Long: `Cells are several databases, each with its gateways, that events are divided among by their keys: see docs/cells.md.
These commands read the configuration of a gateway of one cell, and its store.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCellsStatusCommand(w), newCellsPlanCommand(w), newCellsForgetCommand(w))
	return c
}

// openCells opens the cell of a configuration.
func openCells(ctx context.Context, w *env, c *cobra.Command) (*gateway.CellsBeside, error) {
	cfg, _, err := loadConfig(w, c.Flags())
	if err != nil {
		return nil, err
	}
	return gateway.OpenCells(ctx, cfg, gateway.Options{})
}

func cellsFlags(c *cobra.Command) {
	configFlag(c.Flags())
	config.StoreFlags(c.Flags())
}

func newCellsStatusCommand(w *env) *cobra.Command {
	var asYAML bool
	c := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the map that counts, which cells answer, and who is still asked for keys that moved",
		Long: `Status says which map counts in this cell, which share of the keys each cell owns, whether it answers over mutual TLS and has
the same map, and which cells are still asked for keys that they owned by an earlier map, until when.

Exit status: 0 all cells answer and have the same map; 1 one does not, or the question could not be answered; 2 wrong
usage.`,
		Example: "  hookonce cells status\n  hookonce cells status --yaml   # the map that counts, for the file",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := openCells(c.Context(), w, c)
			if err != nil {
				return err
			}
			defer b.Close()
			if asYAML {
				printCellsYAML(w, b.Status())
				return nil
			}
			b.Reach(c.Context())
			return printCells(w, b.Status())
		},
	}
	cellsFlags(c)
	c.Flags().BoolVar(&asYAML, "yaml", false, "write the map that counts as it stands in a file")
	return c
}

// printCellsYAML writes a map for the configuration.
func printCellsYAML(w *env, s cells.Status) {
	fmt.Fprintf(w.out, "cells_map: %d\ncells:\n", s.Map.Number)
	for _, c := range s.Map.Cells {
		fmt.Fprintf(w.out, "- {name: %s, url: %q, weight: %d}\n", c.Name, c.URL, c.Weight)
	}
}

// errCells says that not all is well.
var errCells = errors.New("not all cells answer with the same map")

func printCells(w *env, s cells.Status) error {
	if s.Map.Number == 0 {
		fmt.Fprintf(w.out, "Cell %s knows no map yet: a gateway introduces that of the file, or learns it from another cell.\n", clean(s.Self))
		return errCells
	}
	fmt.Fprintf(w.out, "Cell %s goes by map %d.\n", clean(s.Self), s.Map.Number)
	if s.Told != s.Map.Number {
		fmt.Fprintf(w.out, "The file has cells_map: %d. The store counts: write what 'hookonce cells status --yaml' shows into the file.\n", s.Told)
	}
	shares, well := s.Map.Shares(), true
	t := newTable(w, "", "CELL | SHARE | STATE | URL")
	t.row("", s.Self, percent(shares[s.Self]), "this one", "")
	for _, p := range s.Peers {
		state := "answers, same map"
		switch {
		case p.Reached != nil:
			state, well = "AWAY: "+p.Reached.Error(), false
		case !p.Fenced:
			state, well = "has another map", false
		}
		t.row("", p.Name, percent(p.Share), state, p.URL)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, a := range s.Asked {
		fmt.Fprintln(w.out, askedText(a))
	}
	for _, l := range s.Map.Lost {
		fmt.Fprintf(w.out, "%s was given up, lost since %s: what it acknowledged after that is known to nobody here.\n", clean(l.Cell), clock(l.Since))
	}
	if !well {
		return errCells
	}
	return nil
}

// askedText says until when a cell is asked.
func askedText(a cells.Asked) string {
	text := fmt.Sprintf("%s is asked for keys that it owned by map %d, ", clean(a.Cell), a.Map)
	switch {
	case !a.Confirmed:
		return text + "for as long as it has not confirmed a newer one."
	case a.Until.IsZero():
		return text + "for ever: a source has retention.ids: 0."
	}
	return text + "until " + clock(a.Until) + "."
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func newCellsPlanCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan [flags]",
		Short: "Say which share of the keys the cells of the file would move",
		Long: `Plan compares the cells in the file with the map that counts, and says which shares of the keys would move, by looking at
100,000 keys that are made up. It changes nothing: a gateway introduces the map when it starts, or reads its file again, with
cells_map one higher.`,
		Example: "  hookonce cells plan --config new.yaml",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := openCells(c.Context(), w, c)
			if err != nil {
				return err
			}
			defer b.Close()
			return printPlan(w, b)
		},
	}
	cellsFlags(c)
	return c
}

func printPlan(w *env, b *gateway.CellsBeside) error {
	p, err := b.Plan()
	if err != nil {
		return err
	}
	if p.From.Number == 0 {
		fmt.Fprintf(w.out, "No map is known yet, so nothing moves: this would be map 1.\n")
		return nil
	}
	all := 0.
	for _, m := range p.Moves {
		all += m.Share
	}
	fmt.Fprintf(w.out, "From map %d to the cells of the file, as map %d: %s of the keys move.\n", p.From.Number, p.To.Number, percent(all))
	for _, m := range p.Moves {
		fmt.Fprintf(w.out, "  %s from %s to %s\n", percent(m.Share), clean(m.From), clean(m.To))
	}
	if p.Told != p.To.Number {
		fmt.Fprintf(w.out, "The file has cells_map: %d. To introduce it, write cells_map: %d.\n", p.Told, p.To.Number)
	}
	return nil
}

func newCellsForgetCommand(w *env) *cobra.Command {
	var since, reason, by string
	var yes bool
	c := &cobra.Command{
		Use:   "forget CELL --lost-since TIME --yes [flags]",
		Short: "Give up a cell whose database is lost",
		Long: `Forget introduces a map without a cell, whose keys the others own from then on, and which nobody asks any more. It is for a
cell whose database is lost for good; one that comes back is waited for, and one that is to go gets weight: 0.

What is not promised any more then: what the cell acknowledged and had not delivered is lost, and what it had on record is
new to its owners, so that a copy of an event that it delivered is delivered once more. --lost-since is the time of
its last backup, or of the last transaction of the standby that takes its place. 'hookonce reconcile --since' that time
lists what senders made since then, where they have a list, and with --ingest or --redeliver brings it back.

Its gateways must be stopped first: nothing here can keep them from accepting what reaches them.
The decision is in the audit log.`,
		Example: `  hookonce cells forget us --lost-since 2026-11-21T12:00:00Z --by alice --reason "disk lost" --yes`,
		Args:    oneArg("CELL"),
		RunE: func(c *cobra.Command, args []string) error {
			now := time.Now()
			at, err := moment("lost-since", since, now)
			switch {
			case since == "":
				err = errors.New("say with --lost-since what it is known to have kept: the time of its last backup")
			case err == nil && at.After(now):
				err = errors.New("--lost-since: it must lie in the past")
			case err == nil && !yes:
				err = fmt.Errorf("this ends the guarantees for what %s had on record (see --help); repeat it with --yes", args[0])
			}
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			b, err := openCells(c.Context(), w, c)
			if err != nil {
				return err
			}
			defer b.Close()
			m, err := b.ForgetCell(c.Context(), args[0], at, by, reason, now)
			if err != nil {
				return err
			}
			fmt.Fprintf(w.out, "%s is forgotten: map %d counts, and the gateways go by it within seconds. Write it into the files of all cells:\n", clean(args[0]), m.Number)
			printCellsYAML(w, b.Status())
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&since, "lost-since", "", "what the cell acknowledged after this `time` is known to nobody: 2h (ago), or 2026-11-21T12:00:00Z")
	f.StringVar(&reason, "reason", "", "`text` for the audit log")
	f.StringVar(&by, "by", "hookonce cells forget", "`name` for the audit log")
	f.BoolVar(&yes, "yes", false, "do it")
	cellsFlags(c)
	return c
}
