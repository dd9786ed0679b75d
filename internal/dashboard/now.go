package dashboard

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/overview"
)

// nowView is what is going on: a verdict, what is wrong, and how all stands.
type nowView struct{ api.Overview }

func (d *dashboard) now(r *http.Request) (*page, error) {
	var v nowView
	if err := d.get(r.Context(), "/overview", nil, &v.Overview); err != nil {
		return nil, err
	}
	return &page{Title: "Now", Place: "/", Again: 5, Data: v, Commands: []command{{"The same", "hookonce status"}, {"What failed", "hookonce failures"}}}, nil
}

// Level is how soon somebody has to look.
func (v nowView) Level() string {
	worst := "good"
	for _, a := range v.Verdict.Alerts {
		switch {
		case a.Severity == alert.Page:
			return "page"
		case a.Severity == alert.Ticket:
			worst = "ticket"
		}
	}
	return worst
}

// fear is one of the things that somebody who is woken up wants to know.
type fear struct {
	Question string
	alert.Answer
}

// Fears are the three of them, with their answers.
func (v nowView) Fears() []fear {
	return []fear{{"Are senders refused?", v.Verdict.Refused}, {"Is anything lost?", v.Verdict.Lost}, {"Is anything doubled?", v.Verdict.Doubled}}
}

// Alerts are those of the verdict, each followed by what follows from it.
func (v nowView) Alerts() (ranked []alert.Alert) {
	consequences := map[string][]alert.Alert{}
	for _, a := range v.Verdict.Alerts {
		if a.Cause != "" {
			consequences[a.Cause] = append(consequences[a.Cause], a)
		}
	}
	for _, a := range v.Verdict.Alerts {
		if a.Cause == "" {
			ranked = append(append(ranked, a), consequences[a.Fingerprint()]...)
			delete(consequences, a.Fingerprint())
		}
	}
	for _, a := range v.Verdict.Alerts { // of a cause that is a consequence itself
		if left := consequences[a.Cause]; len(left) > 0 {
			ranked = append(ranked, left...)
			delete(consequences, a.Cause)
		}
	}
	return ranked
}

// Attention says who looks after an alert, or nothing.
func (v nowView) Attention(a alert.Alert) string {
	for _, by := range v.Attended {
		if by.Alert != strings.TrimSuffix(a.Fingerprint(), "/") {
			continue
		}
		switch {
		case by.Acknowledged != nil:
			return by.Acknowledged.By + " is on it since " + stamp(by.Acknowledged.At) + " UTC: " + by.Acknowledged.Reason + "."
		case by.Silenced != nil:
			return "Silenced by " + by.Silenced.By + " until " + stamp(by.Silenced.Until) + " UTC: " + by.Silenced.Reason + "."
		}
	}
	return ""
}

// Address returns that of the page on which the next step of an alert is taken.
func (v nowView) Address(a alert.Alert) string {
	words := strings.Fields(a.Action.Command)
	switch line := strings.Join(words[:min(len(words), 3)], " "); {
	case a.Action.Path == "/replay", line == "hookonce failures":
		return "/failures"
	case line == "hookonce events list":
		f, name := Filter{}, ""
		for _, word := range words[3:] {
			if flag, is := strings.CutPrefix(word, "--"); is {
				name = flag
				f[name] = "true" // unless its value follows
			} else {
				f[name] = word
			}
		}
		return f.Address()
	case line == "hookonce events show" && len(words) > 3:
		return "/events/" + segment(words[3])
	case strings.HasPrefix(line, "hookonce refusals "):
		return query("/refused", "source", words[2])
	case strings.HasPrefix(line+" ", "hookonce doctor "):
		return "/doctor"
	}
	for _, d := range v.Destinations {
		if d.Name == a.Subject {
			return "/destinations/" + segment(a.Subject)
		}
	}
	for _, s := range v.Sources {
		if s.Name == a.Subject {
			return "/sources/" + segment(a.Subject)
		}
	}
	return "/doctor"
}

// Charts are the three numbers with the week behind them. The last of their hours is that of the snapshot.
func (v nowView) Charts() []Chart {
	n := v.Numbers
	charts := []Chart{
		{Title: "First attempts that failed", Unit: "share", Share: true, Value: percent(share(float64(n.First.FirstFailed), float64(n.First.First))), Points: v.series(n.FirstShares, true),
			Summary: number(n.First.FirstFailed) + " of " + number(n.First.First) + " first attempts in the last 24 hours. Seven days, drawn in pieces of 6 hours."},
		{Title: "Events that came again", Unit: "events", Value: percent(share(float64(n.Reseen), float64(n.Events))), Points: v.series(n.ReseenCounts, false),
			Summary: frame.NewAndAgain(float64(n.Events-n.Reseen), float64(n.Reseen)) + v.usual() + ". Seven days, drawn in pieces of 6 hours."},
		{Title: "Events in the store", Unit: "stored", Value: number(n.Rows), Points: v.series(n.StoredCounts, false),
			Summary: "Yesterday " + number(n.StoredYesterday) + " were stored and " + number(n.PurgedYesterday) + " purged. Seven days of what was stored, drawn in pieces of 6 hours."},
	}
	drawn := charts[:0]
	for _, c := range charts {
		if len(c.Points) > 0 {
			drawn = append(drawn, c)
		}
	}
	return drawn
}

// usual says what share of the events of sources usually comes again.
func (v nowView) usual() string {
	var words []string
	for _, s := range v.Sources {
		if s.Usual.Hours >= 24 && len(words) < 3 {
			words = append(words, s.Name+" "+percent(s.Usual.Share))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; usual are " + strings.Join(words, ", ")
}

// series puts the hours of a week into pieces: their sum, or of shares the mean.
func (v nowView) series(hours []float64, mean bool) (points []Point) {
	begin := v.At.UTC().Truncate(time.Hour).Add(-time.Duration(len(hours)-1) * time.Hour)
	for i := 0; i < len(hours); i += frame.Piece {
		end := min(i+frame.Piece, len(hours))
		sum := 0.0
		for _, n := range hours[i:end] {
			sum += n
		}
		if mean {
			sum /= float64(end - i)
		}
		points = append(points, Point{At: begin.Add(time.Duration(i) * time.Hour), Value: sum})
	}
	return points
}

// Group returns the address of the page about a failure of a destination.
func (nowView) Group(destination string, f overview.Failure) string {
	return groupAddress(api.FailureGroup{Destination: destination, Kind: f.Kind, Status: f.Status})
}

// Drains says when the backlog is worked off. Of one that has come since it was looked at first there is nothing to say: what
// waited then is done, and a busy destination always has some under way.
func (v nowView) Drains(d overview.DestinationState) string {
	switch {
	case d.DrainsIn == nil:
		return ""
	case *d.DrainsIn > 0:
		return "gone in " + span(time.Duration(*d.DrainsIn*float64(time.Second)))
	case d.Since != nil && v.At.Sub(*d.Since) < overview.DrainSpan:
		return ""
	}
	return "not getting shorter"
}

// Share returns the share of first attempts that failed in the last hour, in words; nothing if there were none.
func (nowView) Share(d overview.DestinationState) string {
	if d.Hour.First == 0 {
		return "–"
	}
	return percent(share(float64(d.Hour.FirstFailed), float64(d.Hour.First))) + " of " + strconv.FormatInt(d.Hour.First, 10)
}
