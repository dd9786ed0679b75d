package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// maxPoints bounds an answer about history.
const maxPoints = 50_000

// historyInput is the question for what was counted.
type historyInput struct {
	Step        string    `query:"step" enum:"minute,hour" default:"minute" doc:"Minutes are kept for 48 hours, hours for 100 days."`
	From        time.Time `query:"from" doc:"From the minute or hour on that has this time. Missing: two hours, or seven days with step=hour, before until."`
	Until       time.Time `query:"until" doc:"Before this time. Missing: now."`
	Source      string    `query:"source" maxLength:"64"`
	Destination string    `query:"destination" maxLength:"64"`
	What        []string  `query:"what" maxItems:"100" doc:"Words, or beginnings of words that end in a star, such as rejected:*, separated by commas. Missing: all." example:"accepted,copies,rejected:*"`
	Total       bool      `query:"total" doc:"Add up sources and destinations."`
}

// History is what all gateways on the store counted.
type History struct {
	Step   string    `json:"step" enum:"minute,hour"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Series []Series  `json:"series" nullable:"false" doc:"By source, destination and word, those that counted anything."`
}

// Series is how often one thing happened.
type Series struct {
	Source      string         `json:"source,omitempty"`
	Destination string         `json:"destination,omitempty"`
	What        string         `json:"what"`
	Sum         int64          `json:"sum"`
	Points      []HistoryPoint `json:"points" nullable:"false" doc:"In order; where there is none nothing was counted. The last minute is up to ten seconds behind."`
}

// HistoryPoint is a minute or an hour.
type HistoryPoint struct {
	At time.Time `json:"at" doc:"Its beginning."`
	N  int64     `json:"n"`
}

// history answers with what was counted.
func (a *api) history(ctx context.Context, in *historyInput) (*answer[History], error) {
	q, err := in.query(a.opt.Now())
	if err != nil {
		return nil, err
	}
	var points []tally.Point
	err = a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		points, err = a.opt.Records.Tallies(ctx, q)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(points) > maxPoints:
		return nil, invalid("query", fmt.Sprintf("the answer has more than %d points: ask for a shorter time, for hours, for fewer words, for one source or destination, or for the total", maxPoints), nil)
	}
	if len(points) == 0 { // a source that is not configured any more may have some
		if err := a.knownSource("query.source", in.Source); err != nil {
			return nil, err
		}
	}
	return &answer[History]{History{Step: in.Step, From: q.From, Until: q.Until, Series: series(points)}}, nil
}

// query is the question in the form of the store, checked.
func (in *historyInput) query(now time.Time) (q tally.Query, err error) {
	q = tally.Query{Until: in.Until.UTC(), Step: time.Minute, Source: in.Source, Destination: in.Destination, Total: in.Total, Limit: maxPoints + 1}
	back := 2 * time.Hour
	if in.Step == "hour" {
		q.Step, back = time.Hour, 7*24*time.Hour
	}
	if in.Until.IsZero() {
		q.Until = now.UTC()
	}
	if q.From = in.From.UTC().Truncate(q.Step); in.From.IsZero() {
		q.From = q.Until.Add(-back).Truncate(q.Step)
	}
	for _, t := range []struct {
		name  string
		value time.Time
	}{{"from", q.From}, {"until", q.Until}} {
		if err := validTime("query."+t.name, t.value); err != nil {
			return q, err
		}
	}
	if !q.From.Before(q.Until) {
		return q, invalid("query.until", "this is not later than from, so nothing can match", q.Until)
	}
	for _, t := range []struct{ name, value string }{{"source", in.Source}, {"destination", in.Destination}} {
		if !plain(t.value) {
			return q, invalid("query."+t.name, "this is not readable text", nil)
		}
	}
	if len(in.What) == 0 { // programs count in the same tables, under words of their own
		q.Whats = tally.Match("*")
	}
	for _, pattern := range in.What {
		words := tally.Match(pattern)
		if len(words) == 0 {
			return q, invalid("query.what", "nothing is counted under this word; docs/operating.md lists them", pattern)
		}
		q.Whats = append(q.Whats, words...)
	}
	return q, nil
}

// series puts the points of each thing together.
func series(points []tally.Point) []Series {
	type name struct {
		source, destination string
		what                tally.What
	}
	at, all := map[name]int{}, []Series{}
	for _, p := range points {
		n := name{p.Source, p.Destination, p.What}
		i, ok := at[n]
		if !ok {
			i, at[n] = len(all), len(all)
			all = append(all, Series{Source: p.Source, Destination: p.Destination, What: string(p.What)})
		}
		all[i].Sum += p.N
		all[i].Points = append(all[i].Points, HistoryPoint{p.Minute.UTC(), p.N})
	}
	slices.SortFunc(all, func(a, b Series) int {
		return tally.Point{Source: a.Source, Destination: a.Destination, What: tally.What(a.What)}.
			Compare(tally.Point{Source: b.Source, Destination: b.Destination, What: tally.What(b.What)})
	})
	return all
}
