package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
)

// nowView is what is going on: a verdict, what is wrong, and a line for each destination and source.
type nowView struct {
	At time.Time `json:"at"` // when everything was looked at
	// Level is "good", "ticket" or "page": whether somebody should look, and how soon.
	Level    string  `json:"level"`
	Headline string  `json:"headline"`
	Troubles []issue `json:"issues"`
	// Away is why the store cannot be asked. Empty: it answers.
	Away         string              `json:"store_away,omitempty"`
	Destinations []fleet.Destination `json:"destinations"`
	Sources      []sourceLine        `json:"sources"`
	Stats        api.Stats           `json:"stats"`
	Numbers      []Chart             `json:"numbers,omitempty"` // of the week
}

// issue is one thing that is wrong, with the place where it is mended.
type issue struct {
	Level    string    `json:"level"`
	Headline string    `json:"headline"`
	Detail   string    `json:"detail,omitempty"`
	Since    time.Time `json:"since"`
	Action   string    `json:"action"`
	Place    string    `json:"place"`
	rank     int64     // among issues of a level, the most first
}

// sourceLine is a source with what of it was refused.
type sourceLine struct {
	api.Source
	Refused int64      `json:"refused"` // since this process began
	Last    *time.Time `json:"last_refused,omitempty"`
}

// snapshotAge is how long what page one shows is the same for everybody.
const snapshotAge = time.Second

func (d *dashboard) now(r *http.Request) (*page, error) {
	v, err := d.snapshot.get(d.opt.Now, snapshotAge, func() (nowView, error) { return d.look(context.WithoutCancel(r.Context())) })
	if err != nil {
		return nil, err
	}
	return &page{Title: "Now", Place: "/", Again: 5, Data: v, Commands: []command{
		{"What failed", "hookonce failures"}, {"Destinations", "hookonce destinations list"},
	}}, nil
}

// look asks everything once. Without a store there is a verdict all the same.
func (d *dashboard) look(ctx context.Context) (nowView, error) {
	v := nowView{At: d.opt.Now().UTC(), Troubles: []issue{}, Destinations: []fleet.Destination{}, Sources: []sourceLine{}}
	var failures api.FailureList
	var destinations fleet.DestinationList
	var sources api.SourceList
	for _, q := range []struct {
		path string
		out  any
	}{{"/sources", &sources}, {"/destinations", &destinations}, {"/failures", &failures}, {"/stats", &v.Stats}} {
		err := d.get(ctx, q.path, nil, q.out)
		var why *Refusal
		switch {
		case errors.As(err, &why) && why.Status == http.StatusServiceUnavailable:
			v.Away = why.Error()
		case err != nil:
			return v, err
		}
	}
	v.Destinations = append(v.Destinations, destinations.Destinations...)
	for _, s := range sources.Sources {
		line := sourceLine{Source: s}
		var refused api.RefusalList
		if d.get(ctx, "/sources/"+segment(s.Name)+"/refusals", nil, &refused) == nil && len(refused.Refusals) > 0 {
			line.Refused, line.Last = refused.Total, &refused.Refusals[0].At
		}
		v.Sources = append(v.Sources, line)
	}
	v.judge(failures.Open)
	if w, ok := d.week(ctx, "", "", "first", "first_failed", "reseen", "accepted", "stored", "purged:*"); ok {
		v.Numbers = []Chart{
			w.rate("First attempts that failed", "first_failed", "first", "first attempts"),
			w.rate("Events that came again", "reseen", "accepted", "events"),
			w.count("Events stored", "events", "stored"),
		}
	}
	return v, nil
}

// What is worth a look, and what cannot wait.
const (
	good   = "good"
	ticket = "ticket"
	urgent = "page"
)

const (
	// longPause is how long a pause is nothing to be said about: a day, so that a night's migration passes.
	longPause = 24 * time.Hour
	// lately is for how long a refused request is worth a line.
	lately = 15 * time.Minute
)

// judge finds what is wrong, the worst first, and says it in a sentence.
func (v *nowView) judge(failed []api.FailureGroup) {
	if v.Away != "" {
		v.Level, v.Headline = urgent, "The store does not answer, so nothing is accepted and nothing is lost: senders are told to send again."
		return
	}
	for i := range v.Destinations {
		v.judgeDestination(&v.Destinations[i], failed)
	}
	for i := range v.Sources {
		if s := &v.Sources[i]; s.Last != nil && v.At.Sub(*s.Last) < lately {
			v.Troubles = append(v.Troubles, issue{Level: ticket, Headline: "Requests to " + s.Name + " are refused: the last " + span(v.At.Sub(*s.Last)) + " ago.",
				Since: *s.Last, Action: "See why", Place: query("/refused", "source", s.Name), rank: s.Refused})
		}
	}
	slices.SortStableFunc(v.Troubles, func(a, b issue) int {
		return cmp.Or(cmp.Compare(severity(b.Level), severity(a.Level)), cmp.Compare(b.rank, a.rank))
	})
	if len(v.Troubles) == 0 {
		v.Level, v.Headline = good, "Nothing is wrong: every destination takes what it is sent."
		return
	}
	v.Level, v.Headline = v.Troubles[0].Level, v.Troubles[0].Headline
}

func severity(level string) int { return slices.Index([]string{good, ticket, urgent}, level) }

// backlog says what waits at a destination. What is dead does not: it begins again when somebody says so.
func (v *nowView) backlog(d *fleet.Destination) (waiting int64, words string) {
	oldest := v.At
	for _, o := range d.Open {
		if o.State != "dead" {
			waiting += o.Count
			oldest = earlier(oldest, o.Oldest)
		}
	}
	words = plural(waiting, "delivery waits", "deliveries wait")
	if waiting > 0 {
		words += ", the oldest for " + span(v.At.Sub(oldest))
	}
	return waiting, words
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// judgeDestination finds what is wrong with one. A pause, or that it is ill, is the cause of what waits there, and the failures of one that
// is ill are said with it.
func (v *nowView) judgeDestination(d *fleet.Destination, failed []api.FailureGroup) {
	place := "/destinations/" + segment(d.Name)
	waiting, behind := v.backlog(d)
	switch {
	case d.Pause != nil && v.At.Sub(d.Pause.At) > longPause && waiting > 0:
		v.Troubles = append(v.Troubles, issue{Level: ticket, Headline: d.Name + " has been paused for " + span(v.At.Sub(d.Pause.At)) + " by " + d.Pause.By + ".",
			Detail: behind + ". The reason was: " + d.Pause.Reason, Since: d.Pause.At, Action: "Resume", Place: place, rank: waiting})
		return
	case d.Pause != nil:
		return
	case d.Health != nil && d.Health.State == "ill":
		since := v.At
		if d.Health.Since != nil {
			since = *d.Health.Since
		}
		v.Troubles = append(v.Troubles, issue{Level: urgent, Headline: d.Name + " has been failing since " + clock(since) + ": " + d.Health.Error + ".",
			Detail: behind + ". Senders are not affected, and nothing is lost", Since: since, Action: "Look at it", Place: place, rank: waiting})
		return
	}
	for _, g := range failed {
		if g.Destination == d.Name {
			v.Troubles = append(v.Troubles, issue{Level: ticket, Headline: plural(g.Count, "delivery", "deliveries") + " to " + g.Destination + " failed: " + groupWords(g) + ".",
				Detail: g.Text, Since: g.Since, Action: "Look at them", Place: groupAddress(g), rank: g.Count})
		}
	}
}
