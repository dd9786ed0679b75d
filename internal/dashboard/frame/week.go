package frame

import (
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// A week is counted by the hour, and drawn in pieces of six of them.
const (
	WeekHours = 7 * 24
	Piece     = 6 // hours
)

// Week is what was counted in each of its hours, by word.
type Week struct {
	From  time.Time
	hours map[string][]float64
}

// NewWeek returns the week that ends with the hour that goes on.
func NewWeek(now time.Time) Week {
	end := now.UTC().Truncate(time.Hour).Add(time.Hour)
	return Week{end.Add(-WeekHours * time.Hour), map[string][]float64{}}
}

// Until is the end of the last hour.
func (w Week) Until() time.Time { return w.From.Add(WeekHours * time.Hour) }

// Add adds what was counted in the hour that begins at that time.
func (w Week) Add(word string, at time.Time, n int64) {
	hours := w.hours[word]
	if hours == nil {
		hours = make([]float64, WeekHours)
		w.hours[word] = hours
	}
	if i := int(at.Sub(w.From) / time.Hour); !at.Before(w.From) && i < WeekHours {
		hours[i] += float64(n)
	}
}

// Last returns how often something happened in the last hours, the one that goes on among them.
func (w Week) Last(hours int, word string) (sum float64) {
	all := w.hours[word]
	if all == nil {
		return 0
	}
	for _, n := range all[WeekHours-hours:] {
		sum += n
	}
	return sum
}

// points returns a point for each piece of the week: how often one word was counted, or its share of all that others were.
func (w Week) points(word string, of ...string) (points []Point) {
	sum := func(word string, from int) (sum float64) {
		if all := w.hours[word]; all != nil {
			for _, n := range all[from : from+Piece] {
				sum += n
			}
		}
		return sum
	}
	for i := 0; i < WeekHours; i += Piece {
		n := sum(word, i)
		if len(of) > 0 {
			whole := 0.0
			for _, word := range of {
				whole += sum(word, i)
			}
			n = Share(n, whole)
		}
		points = append(points, Point{At: w.From.Add(time.Duration(i) * time.Hour), Value: n})
	}
	return points
}

// Share returns a part of a whole; none of nothing.
func Share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// Count returns a chart of how often something happened. It says what it covers.
func (w Week) Count(title, noun, word string) Chart {
	return Chart{Title: title, Unit: noun, Points: w.points(word),
		Value:   Number(w.Last(24, word)),
		Summary: "In the last 24 hours; " + Number(w.Last(WeekHours, word)) + " in 7 days, drawn in pieces of 6 hours."}
}

// Rate returns a chart of the share that one word has of another.
func (w Week) Rate(title, word, of, nouns string) Chart {
	return Chart{Title: title, Unit: "share", Share: true, Points: w.points(word, of),
		Value: Percent(Share(w.Last(24, word), w.Last(24, of))),
		Summary: Number(w.Last(24, word)) + " of " + Number(w.Last(24, of)) + " " + nouns + " in the last 24 hours; " +
			Percent(Share(w.Last(WeekHours, word), w.Last(WeekHours, of))) + " in 7 days, drawn in pieces of 6 hours."}
}

// CameAgain returns a chart of the share that events that came again have of all that came.
func (w Week) CameAgain() Chart {
	fresh := func(hours int) float64 { return w.Last(hours, "accepted") + w.Last(hours, "unkeyed") }
	again := func(hours int) float64 { return w.Last(hours, "reseen") }
	return Chart{Title: "Events that came again", Unit: "share", Share: true, Points: w.points("reseen", "accepted", "unkeyed", "reseen"),
		Value: Percent(Share(again(24), fresh(24)+again(24))),
		Summary: NewAndAgain(fresh(24), again(24)) + "; " +
			Percent(Share(again(WeekHours), fresh(WeekHours)+again(WeekHours))) + " in 7 days, drawn in pieces of 6 hours."}
}

// NewAndAgain says how many events of the last 24 hours were new and how many came again, which is a share of both together.
func NewAndAgain(fresh, again float64) string {
	return "In the last 24 hours " + Plural(fresh, "event was", "events were") + " new and " + Number(again) + " came again, " +
		Percent(Share(again, fresh+again)) + " of both"
}

// Later returns how many copies of the week came later after their events than that, as far as their bins tell.
func (w Week) Later(age time.Duration) (n float64) {
	from := time.Duration(0)
	for _, bin := range tally.Ages() {
		if from >= age {
			n += w.Last(WeekHours, string(bin.What))
		}
		from = bin.Upper
	}
	return n
}

// Ages returns a chart of how late copies came in the week.
func (w Week) Ages() Chart {
	c := Chart{Title: "How late copies came", Unit: "copies"}
	all := 0.0
	for _, bin := range tally.Ages() {
		n := w.Last(WeekHours, string(bin.What))
		all += n
		label := "longer"
		if bin.Upper > 0 {
			label = "up to " + Span(bin.Upper)
		}
		c.Points = append(c.Points, Point{Label: label, Value: n})
	}
	c.Value = Number(all)
	c.Summary = "Copies in 7 days, by how long after their events they came: within a second at the left, after more than 30 days at the right."
	return c
}
