package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

// replaying is the command that has events delivered again.
type replaying struct {
	admin  adminFlags
	filter filterFlags
	reason string
	force  bool
	rate   float64
	dryRun bool
	yes    bool
}

func newEventsReplayCommand(w *world) *cobra.Command {
	r := &replaying{}
	c := &cobra.Command{
		Use:   "replay [SOURCE KEY | ID] --reason TEXT [flags]",
		Short: "Deliver one event again, or all that flags choose",
		Long: `Replay has failed and dead deliveries begin again at once. What is pending or being delivered is
left alone, and what is done as well, unless --force is given: the destination then sees the header
Hookonce-Forced: true.

Without an event it replays all deliveries that the flags choose, after counting them, and only with
--yes. Who did it and why is kept in the audit record.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneEvent(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return r.run(w, c, args) },
	}
	r.admin.declare(c)
	r.filter.declare(c.Flags())
	fs := c.Flags()
	fs.StringVar(&r.reason, "reason", "", "why, for the audit record, as a `text`")
	fs.BoolVar(&r.force, "force", false, "replay what is done as well")
	fs.Float64Var(&r.rate, "rate", 0, "spread them: this `number` in a second, those in an order of their own apart; all at once if not set")
	fs.BoolVar(&r.dryRun, "dry-run", false, "only count")
	fs.BoolVar(&r.yes, "yes", false, "replay all that the flags choose")
	return c
}

func (r *replaying) run(w *world, c *cobra.Command, args []string) error {
	client, err := r.admin.client(w, c)
	if err != nil {
		return err
	}
	if r.reason == "" {
		return &usageError{c.CommandPath(), errors.New("say why with --reason; it is kept in the audit record")}
	}
	if len(args) > 0 {
		return r.one(c.Context(), w, client, args)
	}
	filter, err := r.filter.filter(time.Now())
	if err == nil && filter == (api.Filter{}) {
		err = errors.New("name an event, or choose some with flags such as --state dead or --since 1h")
	}
	if err != nil {
		return &usageError{c.CommandPath(), err}
	}
	return r.many(w, c, client, filter)
}

// one replays one event. The flags that choose among many would say nothing.
func (r *replaying) one(ctx context.Context, w *world, client *adminClient, args []string) error {
	path, err := eventPath(args)
	if err != nil {
		return err
	}
	f := r.filter
	f.destination = ""
	if f != (filterFlags{}) || r.rate != 0 {
		return &usageError{"hookonce events replay", errors.New("an event is named, so of the flags that choose only --destination has a meaning")}
	}
	var done api.ReplayResult
	body := api.ReplayOne{Destination: r.filter.destination, Force: r.force, Reason: r.reason, DryRun: r.dryRun}
	if err := client.call(ctx, http.MethodPost, path+"/replay", body, &done); err != nil {
		return err
	}
	return r.print(w, &done)
}

// many counts, and replays if it may.
func (r *replaying) many(w *world, c *cobra.Command, client *adminClient, filter api.Filter) error {
	body := api.ReplayMany{Filter: filter, Force: r.force, Reason: r.reason, Rate: r.rate, DryRun: true}
	counted, err := replayAll(c.Context(), w, client, body)
	switch {
	case err != nil:
		return err
	case r.dryRun:
		return r.print(w, counted)
	case !r.yes:
		if err := r.print(w, counted); err != nil {
			return err
		}
		return &usageError{c.CommandPath(), errors.New("nothing was replayed; add --yes to do it")}
	}
	body.DryRun = false
	done, err := replayAll(c.Context(), w, client, body)
	if done != nil && (err == nil || done.Deliveries > 0) {
		err = errors.Join(r.print(w, done), err)
	}
	if err != nil && done != nil && done.Deliveries > 0 {
		return fmt.Errorf("%w; run the same command again for the rest", err)
	}
	return err
}

// replayAll sends the request until nothing is left, and sums up the answers. After an error they tell
// what was done before.
func replayAll(ctx context.Context, w *world, client *adminClient, body api.ReplayMany) (*api.ReplayResult, error) {
	all := &api.ReplayResult{GoneEvents: []api.GoneEvent{}}
	for {
		var part api.ReplayResult
		if err := client.call(ctx, http.MethodPost, "/replay", body, &part); err != nil {
			return all, err
		}
		all.Events += part.Events
		all.Deliveries += part.Deliveries
		all.Forced += part.Forced
		all.Open += part.Open
		all.Gone += part.Gone
		all.GoneEvents = append(all.GoneEvents, part.GoneEvents...)
		all.DryRun, all.Audit = part.DryRun, part.Audit
		if body.Cursor = part.Cursor; body.Cursor == "" {
			return all, nil
		}
		fmt.Fprintf(w.err, "Found %d deliveries so far; going on.\n", all.Deliveries)
	}
}

func (r *replaying) print(w *world, done *api.ReplayResult) error {
	if r.admin.json {
		return printJSON(w, done)
	}
	verb := "begin again"
	if done.DryRun {
		verb = "would begin again"
	}
	fmt.Fprintf(w.out, "%d deliveries %s, %d of them although they are done.\n", done.Deliveries, verb, done.Forced)
	if done.Open > 0 {
		fmt.Fprintf(w.out, "%d are pending or being delivered already and are left alone.\n", done.Open)
	}
	if done.Gone > 0 {
		fmt.Fprintf(w.out, "%d events cannot be delivered again, because their bodies were deleted:\n", done.Gone)
		t := newTable(w, "", "ID | SOURCE | KEY")
		for _, g := range done.GoneEvents {
			t.row("", g.ID, g.Source, g.Key)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if done.Audit != "" {
		fmt.Fprintf(w.out, "Audit record %s.\n", done.Audit)
	}
	return nil
}
