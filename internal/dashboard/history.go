package dashboard

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/tally"
)

// A week is counted by the hour, and drawn in pieces of six of them.
const (
	weekHours = 7 * 24
	piece     = 6 // hours
)

// week is what was counted in each of its hours, by word.
type week struct {
	from  time.Time
	hours map[string][]float64
}

// week asks what was counted of a source or a destination, or of all, in the week before. It reports false if that cannot be told.
func (d *dashboard) week(ctx context.Context, source, destination string, words ...string) (w week, ok bool) {
	end := d.opt.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	w = week{end.Add(-weekHours * time.Hour), map[string][]float64{}}
	query := url.Values{"step": {"hour"}, "from": {w.from.Format(time.RFC3339)}, "until": {end.Format(time.RFC3339)}, "what": {strings.Join(words, ",")}}
	for name, text := range map[string]string{"source": source, "destination": destination} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if source == "" && destination == "" {
		query.Set("total", "true")
	}
	var history api.History
	if err := d.get(ctx, "/history", query, &history); err != nil {
		return w, false
	}
	for _, s := range history.Series {
		hours := w.hours[s.What]
		if hours == nil {
			hours = make([]float64, weekHours)
			w.hours[s.What] = hours
		}
		for _, p := range s.Points {
			if i := int(p.At.Sub(w.from) / time.Hour); i >= 0 && i < weekHours {
				hours[i] += float64(p.N)
			}
		}
	}
	return w, true
}

// last returns how often something happened in the last hours, the one that goes on among them.
func (w week) last(hours int, word string) (sum float64) {
	all := w.hours[word]
	if all == nil {
		return 0
	}
	for _, n := range all[weekHours-hours:] {
		sum += n
	}
	return sum
}

// points returns a point for each piece of the week: how often one word was counted, or its share of another.
func (w week) points(word, of string) (points []Point) {
	sum := func(word string, from int) (sum float64) {
		if all := w.hours[word]; all != nil {
			for _, n := range all[from : from+piece] {
				sum += n
			}
		}
		return sum
	}
	for i := 0; i < weekHours; i += piece {
		n := sum(word, i)
		if of != "" {
			n = share(n, sum(of, i))
		}
		points = append(points, Point{At: w.from.Add(time.Duration(i) * time.Hour), Value: n})
	}
	return points
}

// share returns a part of a whole; none of nothing.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// count returns a chart of how often something happened. It says what it covers.
func (w week) count(title, noun, word string) Chart {
	return Chart{Title: title, Unit: noun, Points: w.points(word, ""),
		Value:   number(w.last(24, word)),
		Summary: "In the last 24 hours; " + number(w.last(weekHours, word)) + " in 7 days, drawn in pieces of 6 hours."}
}

// rate returns a chart of the share that one word has of another.
func (w week) rate(title, word, of, nouns string) Chart {
	return Chart{Title: title, Unit: "share", Share: true, Points: w.points(word, of),
		Value: percent(share(w.last(24, word), w.last(24, of))),
		Summary: number(w.last(24, word)) + " of " + number(w.last(24, of)) + " " + nouns + " in the last 24 hours; " +
			percent(share(w.last(weekHours, word), w.last(weekHours, of))) + " in 7 days, drawn in pieces of 6 hours."}
}

// ages returns a chart of how late copies came in the week.
func (w week) ages() Chart {
	c := Chart{Title: "How late copies came", Unit: "copies"}
	all := 0.0
	for _, bin := range tally.Ages() {
		n := w.last(weekHours, string(bin.What))
		all += n
		label := "longer"
		if bin.Upper > 0 {
			label = "up to " + span(bin.Upper)
		}
		c.Points = append(c.Points, Point{Label: label, Value: n})
	}
	c.Value = number(all)
	c.Summary = "Copies in 7 days, by how long after their events they came: within a second at the left, after more than 30 days at the right."
	return c
}
