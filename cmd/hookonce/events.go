package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

func newEventsCommand(w *world) *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "List, show and replay the events of a running gateway",
		Long: `Events asks a running gateway, on its admin listener, what happened to events, and has it deliver
them again.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(newEventsListCommand(w), newEventsShowCommand(w), newEventsReplayCommand(w))
	return c
}

// filterFlags choose events.
type filterFlags struct {
	source, kind, resource, field, state, destination, seen, since, until string
}

func (f *filterFlags) declare(fs *pflag.FlagSet) {
	fs.StringVar(&f.source, "source", "", "only events of the source with this `name`")
	fs.StringVar(&f.kind, "type", "", "only events whose type matches this `pattern`; * stands for any characters")
	fs.StringVar(&f.resource, "resource", "", "only events about this `object`, such as pi_123: whole, or without its tenant")
	fs.StringVar(&f.field, "field", "", "only events in which a field has this text, as `FIELD=TEXT`: json:$.data.object.customer=cus_1; fields are named as in routes")
	fs.StringVar(&f.state, "state", "", "only events with a delivery in this `state`: pending, processing, failed, dead; or done")
	fs.StringVar(&f.destination, "destination", "", "only deliveries to the destination with this `name`")
	fs.StringVar(&f.seen, "seen", "", "only events of which a copy of this `kind` came: duplicate, conflict, redriven")
	fs.StringVar(&f.since, "since", "", "only events accepted at this `time` or later: 2026-11-21T12:00:00Z, 2026-11-21, or 2h, 7d (ago)")
	fs.StringVar(&f.until, "until", "", "only events accepted before this `time`")
}

// filter returns the flags as the API has them.
func (f *filterFlags) filter(now time.Time) (api.Filter, error) {
	since, err := moment("since", f.since, now)
	if err != nil {
		return api.Filter{}, err
	}
	until, err := moment("until", f.until, now)
	return api.Filter{
		Source: f.source, Type: f.kind, Resource: f.resource, Field: f.field, State: f.state, Destination: f.destination, Seen: f.seen,
		Since: since, Until: until,
	}, err
}

// moment reads a point in time: absolute, or how long ago.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 15); err == nil {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("--%s: %q is no time; write one like 2026-11-21T12:00:00Z or 2026-11-21, or how long ago, like 30m, 2h or 7d", flag, text)
}

// query returns a filter as the query of a list.
func query(f api.Filter) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"source": f.Source, "type": f.Type, "resource": f.Resource, "field": f.Field, "state": f.State, "destination": f.Destination, "seen": f.Seen,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		q.Set("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	return q
}

func newEventsListCommand(w *world) *cobra.Command {
	var admin adminFlags
	var filter filterFlags
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List events, newest first",
		Long: `List looks through the journal from the newest event on, until it has found enough events or has looked at
everything that the flags allow. Where few match this takes a while, and it says how far it has come: events that
match --field are found by reading bodies, and the others are looked at too, at some thousand in a second. --since
and --until bound it. When it is interrupted, or the gateway cannot go on, it lists what it found, says how far it
looked, and how to go on from there.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			f, err := filter.filter(time.Now())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if limit < 1 || limit > maxListed {
				return &usageError{c.CommandPath(), fmt.Errorf("--limit: write a number from 1 to %d", maxListed)}
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			search := &eventSearch{w: w, client: client, filter: f, limit: limit}
			return search.run(ctx, cursor, admin.json)
		},
	}
	admin.declare(c)
	filter.declare(c.Flags())
	c.Flags().IntVar(&limit, "limit", 50, "list at most this `number` of events")
	c.Flags().StringVar(&cursor, "cursor", "", "go on where another list ended: the `cursor` that it printed")
	return c
}

const (
	maxListed = 10_000
	pageSize  = 200 // the most that the API gives at a time
)

// oneEvent wants a source and a key, or an identifier.
func oneEvent(c *cobra.Command, args []string) error {
	if _, err := eventPath(args); err != nil {
		return &usageError{c.CommandPath(), err}
	}
	return nil
}

// eventPath returns the path of the event that the arguments name.
func eventPath(args []string) (string, error) {
	switch len(args) {
	case 1:
		if id, err := strconv.ParseInt(args[0], 10, 64); err == nil && id > 0 {
			return "/events/" + args[0], nil
		}
		return "", fmt.Errorf("%q is no identifier of an event; write its number, or its source and its key", args[0])
	case 2:
		if args[0] != "" && args[1] != "" {
			return "/events/" + segment(args[0]) + "/" + segment(args[1]), nil
		}
	}
	return "", fmt.Errorf("name one event: its source and its key, or its identifier")
}

func newEventsShowCommand(w *world) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "show {SOURCE KEY | ID} [flags]",
		Short: "Show one event with its deliveries, attempts and copies",
		Args:  oneEvent,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			path, err := eventPath(args)
			if err != nil {
				return err
			}
			var e api.Detail
			if err := client.get(c.Context(), path, nil, &e); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, e)
			}
			return printEvent(w, &e)
		},
	}
	admin.declare(c)
	return c
}

func printEvent(w *world, e *api.Detail) error {
	body := "deleted: the event cannot be delivered again"
	if e.HasBody {
		body = fmt.Sprintf("%d bytes", e.BodyBytes)
	}
	state := e.State
	if e.Unrouted && len(e.Deliveries) == 0 {
		state += ": " + journal.Unrouted + ", so it was delivered nowhere"
	}
	for _, line := range [][2]string{
		{"id", e.ID}, {"source", e.Source}, {"key", cmp.Or(e.Key, "- (unkeyed)")}, {"type", e.Type}, {"state", state},
		{"received", clock(e.ReceivedAt)}, {"resource", e.Resource}, {"twin of", e.TwinOf}, {"body", body},
	} {
		if line[1] != "" {
			fmt.Fprintf(w.out, "%-10s%s\n", line[0], clean(line[1]))
		}
	}
	deliveries := newTable(w, "\n", "DESTINATION | STATE | ATTEMPTS | NEXT TRY | FORCED | LAST ERROR")
	for _, d := range e.Deliveries {
		deliveries.row("", d.Destination, d.State, d.Attempts, clockOf(d.NextTry), forced(d.Forced), d.LastError)
	}
	attempts := newTable(w, "\n", "ATTEMPT AT | DESTINATION | NUMBER | OUTCOME | STATUS | TOOK | ERROR | ANSWER")
	for _, a := range e.Attempts {
		status := ""
		if a.Status != 0 {
			status = strconv.Itoa(a.Status)
		}
		took := time.Duration(a.LatencyMS * float64(time.Millisecond)).Round(100 * time.Microsecond)
		attempts.row("", clock(a.StartedAt), a.Destination, a.Number, a.Outcome, status, took, a.Error, cut(clean(a.Answer), 80))
	}
	copies := newTable(w, "\n", "COPIES FROM | TO | KIND | NUMBER")
	for _, s := range e.Sightings {
		copies.row("", clock(s.First), clock(s.Last), s.Kind, s.Copies)
	}
	return flush(deliveries, attempts, copies)
}

func forced(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

// flush writes tables one after the other.
func flush(tables ...table) error {
	for _, t := range tables {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}
