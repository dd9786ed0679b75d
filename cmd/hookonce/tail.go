package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/lru"
)

func newTailCommand(w *env) *cobra.Command {
	var admin adminFlags
	var filter filterFlags
	var limit int
	c := &cobra.Command{
		Use:   "tail [flags]",
		Short: "Show events as they come",
		Long: `Tail asks a running gateway for the events that it and all others on its database accept, and writes a line for each
as it comes, and another one when its state changes in its first half minute, until it is interrupted. When the
connection is lost it goes on where it was as soon as a gateway answers. What comes faster than it is read is left
out, and counted.`,
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
			if limit < 0 {
				return &usageError{c.CommandPath(), errors.New("--limit: write a number from 1 on")}
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			t := &tailing{w: w, client: client, query: query(f), limit: limit, json: admin.json, pause: time.Second, told: lru.New[string, string](tailMemory)}
			return t.run(ctx)
		},
	}
	admin.declare(c)
	fs := c.Flags()
	fs.StringVar(&filter.source, "source", "", "only events of the source with this `name`")
	fs.StringVar(&filter.kind, "type", "", "only events whose type matches this `pattern`; * stands for any characters")
	fs.StringVar(&filter.state, "state", "", "only what is in this `state` when it is shown: pending, processing, failed, dead; or done")
	fs.StringVar(&filter.since, "since", "", "begin with the events accepted at this `time` or later, the newest 1000: 2026-11-21T12:00:00Z, 2026-11-21, or 2h, 7d (ago)")
	fs.IntVar(&limit, "limit", 0, "end after this `number` of lines; 0: never")
	return c
}

const (
	tailMemory  = 4096             // events whose last line is remembered, so that a reconnection repeats none
	tailSilence = 45 * time.Second // after which a connection is given up; a gateway shows signs of life three times as often
	tailBackoff = 15 * time.Second // at most, between two tries to connect
	maxTailLine = 1 << 20          // bytes of a message
)

// tailing shows events as they come.
type tailing struct {
	w      *env
	client *adminClient
	query  url.Values
	limit  int // lines that are left; 0: without end
	json   bool
	pause  time.Duration // before it connects again; it doubles while nobody answers

	at   string                   // where the tail is
	told *lru.Map[string, string] // the states that were shown, by event
}

// errTailed ends a tail that has shown enough.
var errTailed = errors.New("enough")

// run follows one connection after the other. The first has to succeed.
func (t *tailing) run(ctx context.Context) error {
	pause := t.pause
	for connected := false; ; {
		opened, err := t.follow(ctx)
		connected = connected || opened
		var refused *refusedError
		switch {
		case ctx.Err() != nil || errors.Is(err, errTailed):
			return nil
		case !connected, errors.As(err, &refused) && refused.status != http.StatusServiceUnavailable:
			return err
		case opened:
			pause = t.pause
			fmt.Fprintf(t.w.err, "The connection is lost (%v); it goes on where it was.\n", err)
		default:
			pause = min(2*pause, tailBackoff)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// follow shows what one connection brings. opened reports whether there was one.
func (t *tailing) follow(ctx context.Context) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(tailSilence, func() { cancel(errors.New("the gateway is silent")) })
	defer silence.Stop()
	stream, err := t.client.stream(ctx, "/tail?"+t.query.Encode(), t.at)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxTailLine)
	var kind, at, data string
	for lines.Scan() {
		silence.Reset(tailSilence)
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			kind = value
		case "data":
			data = value
		case "id":
			at = value
		case "":
			if kind != "" {
				err = t.show(kind, data)
			}
			t.at, kind, data = cmp.Or(at, t.at), "", ""
			if err != nil {
				return true, err
			}
		}
	}
	return true, cmp.Or(context.Cause(ctx), lines.Err(), io.ErrUnexpectedEOF)
}

// show writes a message.
func (t *tailing) show(kind, data string) error {
	switch kind {
	case api.TailEvent, api.TailState:
		var e api.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("this is not the answer of a gateway of this version: %w", err)
		}
		return t.line(&e, data)
	case api.TailLeftOut:
		var gap api.TailGap
		if err := json.Unmarshal([]byte(data), &gap); err != nil {
			return fmt.Errorf("this is not the answer of a gateway of this version: %w", err)
		}
		if gap.Before != nil {
			fmt.Fprintf(t.w.err, "Older events are left out; hookonce events list --until %s has them.\n", gap.Before.Format(time.RFC3339))
			return nil
		}
		fmt.Fprintf(t.w.err, "%d were left out: they came faster than they were read.\n", gap.Count)
	case api.TailAway:
		fmt.Fprintln(t.w.err, "The store does not answer the gateway; what comes is shown when it does.")
	case api.TailBack:
		fmt.Fprintln(t.w.err, "The store answers again.")
	}
	return nil
}

// line writes how an event stands, unless that was the last that was written of it.
func (t *tailing) line(e *api.Event, data string) error {
	stand := e.State
	for _, d := range e.Deliveries {
		stand += " " + d.Destination + ": " + d.State
		if d.LastError != "" {
			stand += " (" + d.LastError + ")"
		}
	}
	if last, ok := t.told.Get(e.ID); ok && last == stand {
		return nil
	}
	t.told.Add(e.ID, stand)
	var err error
	if t.json {
		_, err = fmt.Fprintln(t.w.out, data)
	} else {
		_, err = fmt.Fprintf(t.w.out, "%s  %-10s  %s  %s  %s%s\n", clock(e.ReceivedAt), clean(e.State), clean(e.Source), clean(cmp.Or(e.Type, "-")), clean(cmp.Or(e.Key, e.ID)), clean(errorsOf(e)))
	}
	if t.limit > 0 && err == nil {
		if t.limit--; t.limit == 0 {
			err = errTailed
		}
	}
	return err
}

// errorsOf says why deliveries of an event failed.
func errorsOf(e *api.Event) (text string) {
	for _, d := range e.Deliveries {
		if d.LastError != "" {
			text += "  " + d.Destination + ": " + d.LastError
		}
	}
	return text
}
