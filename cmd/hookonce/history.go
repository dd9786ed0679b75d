package main

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

// usualWords are what history shows unless it is asked for other words.
const usualWords = "received,accepted,copies,reseen,attempts,failed,dead"

// historyFlags say which part of the history is meant.
type historyFlags struct{ step, since, until, source, destination, what string }

func newHistoryCommand(w *env) *cobra.Command {
	var admin adminFlags
	var f historyFlags
	c := &cobra.Command{
		Use:   "history [flags]",
		Short: "Show how often what happened, by the minute or by the hour",
		Long: `History asks a running gateway what all gateways on its database counted. Minutes are kept for 48 hours and hours for
100 days. The table adds up sources and destinations that are not chosen, and leaves out times at which nothing was
counted; --json tells them apart. docs/operating.md lists the words.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query, err := f.query(time.Now())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if !admin.json {
				query.Set("total", "true")
			}
			var h api.History
			if err := client.get(c.Context(), "/history", query, &h); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, h)
			}
			return printHistory(w, &h, f.what == usualWords)
		},
	}
	admin.declare(c)
	fs := c.Flags()
	fs.StringVar(&f.step, "step", "minute", "`unit` of time: minute or hour")
	fs.StringVar(&f.since, "since", "", "from this `time` on: 2026-11-21T12:00:00Z, 2026-11-21, or 2h, 7d (ago); 2h, or 7d by the hour, if not set")
	fs.StringVar(&f.until, "until", "", "before this `time`")
	fs.StringVar(&f.source, "source", "", "only what belongs to this `source`")
	fs.StringVar(&f.destination, "destination", "", "only what belongs to this `destination`")
	fs.StringVar(&f.what, "what", usualWords, "`words`, or beginnings of words that end in a star, separated by commas")
	return c
}

// query is the question in the form of the API.
func (f *historyFlags) query(now time.Time) (url.Values, error) {
	q := url.Values{"step": {f.step}, "what": {f.what}}
	for _, t := range []struct{ flag, text, name string }{{"since", f.since, "from"}, {"until", f.until, "until"}} {
		at, err := moment(t.flag, t.text, now)
		if err != nil {
			return nil, err
		}
		if !at.IsZero() {
			q.Set(t.name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.source != "" {
		q.Set("source", f.source)
	}
	if f.destination != "" {
		q.Set("destination", f.destination)
	}
	return q, nil
}

// printHistory writes a row for each time at which anything was counted, and their sums. Words that were counted at no time
// have columns only if all is set.
func printHistory(w *env, h *api.History, all bool) error {
	var words []string
	if all {
		words = strings.Split(usualWords, ",")
	}
	rows, sums := map[time.Time]map[string]int64{}, map[string]int64{}
	for _, s := range h.Series {
		if !slices.Contains(words, s.What) {
			words = append(words, s.What)
		}
		sums[s.What] += s.Sum
		for _, p := range s.Points {
			if rows[p.At] == nil {
				rows[p.At] = map[string]int64{}
			}
			rows[p.At][s.What] += p.N
		}
	}
	t := newTable(w, "", strings.Join(append([]string{"FROM"}, words...), " | "))
	line := func(head string, counts map[string]int64) {
		columns := []any{head}
		for _, word := range words {
			columns = append(columns, counts[word])
		}
		t.row("", columns...)
	}
	for _, at := range slices.SortedFunc(maps.Keys(rows), time.Time.Compare) {
		line(clock(at), rows[at])
	}
	line("sum", sums)
	return t.Flush()
}
