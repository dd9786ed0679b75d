package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/journal"
)

// Filter chooses events: in the query of a list, and in the body of a replay.
type Filter struct {
	Source      string    `query:"source" json:"source,omitempty" maxLength:"64"`
	Type        string    `query:"type" json:"type,omitempty" maxLength:"255" doc:"Pattern for the event's type; * stands for any characters." example:"invoice.*"`
	Resource    string    `query:"resource" json:"resource,omitempty" maxLength:"512" doc:"What the event is about: whole, or a part of it, such as the object without its tenant." example:"pi_123"`
	Field       string    `query:"field" json:"field,omitempty" maxLength:"2048" doc:"A field of the event, named as in routes, and the text that it has. Bodies are read for it, so it takes longer, and finds only events that still have one." example:"json:$.data.object.customer=cus_1"`
	State       string    `query:"state" json:"state,omitempty" enum:"pending,processing,failed,dead,done" doc:"Events with a delivery in this state; done: with none that is open."`
	Destination string    `query:"destination" json:"destination,omitempty" maxLength:"64"`
	Error       string    `query:"error" json:"error,omitempty" enum:"status,timeout,dns,refused,reset,unreachable,tls,address,invalid,body_gone,other" doc:"Events with a delivery that is failed or dead for an error of this kind, as GET /failures names them."`
	Status      int       `query:"status" json:"status,omitempty" minimum:"100" maximum:"999" doc:"Events with a delivery that is failed or dead after an answer with this HTTP status."`
	Seen        string    `query:"seen" json:"seen,omitempty" enum:"duplicate,conflict,redriven" doc:"Events of which a copy of this kind came."`
	Unrouted    bool      `query:"unrouted" json:"unrouted,omitempty" doc:"Events that no route wanted when they came."`
	Since       time.Time `query:"since" json:"since,omitzero" doc:"Accepted at this time or later."`
	Until       time.Time `query:"until" json:"until,omitzero" doc:"Accepted before this time."`
}

// journal returns the filter, checked. Fields are named below location, which is query or body.filter.
func (f *Filter) journal(location string) (journal.Filter, error) {
	for _, t := range []struct{ name, value string }{
		{"source", f.Source}, {"type", f.Type}, {"resource", f.Resource}, {"destination", f.Destination},
	} {
		if !plain(t.value) {
			return journal.Filter{}, invalid(location+"."+t.name, "this is not readable text", nil)
		}
	}
	since, until := f.Since.UTC(), f.Until.UTC()
	for _, t := range []struct {
		name  string
		value time.Time
	}{{"since", since}, {"until", until}} {
		if err := validTime(location+"."+t.name, t.value); err != nil {
			return journal.Filter{}, err
		}
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return journal.Filter{}, invalid(location+".until", "this is not later than since, so nothing can match", f.Until)
	}
	if f.Error != "" || f.Status != 0 {
		switch journal.State(f.State) {
		case "", journal.Failed, journal.Dead:
		default:
			return journal.Filter{}, invalid(location+".state", "what is chosen by its error or status is failed or dead; write one of these, or leave the state out", f.State)
		}
	}
	return journal.Filter{
		Error: journal.ErrorKind(f.Error), Status: f.Status,
		Source: f.Source, Type: f.Type, Resource: f.Resource, State: journal.State(f.State), Destination: f.Destination, Seen: journal.ReceiptKind(f.Seen),
		Unrouted: f.Unrouted, Since: since, Until: until,
	}, nil
}

// validTime returns an error unless every database and JSON can hold a time, which is in UTC.
func validTime(location string, t time.Time) error {
	if year := t.Year(); year < 1 || year > 9999 {
		return invalid(location, "in UTC this is not in the years 1 to 9999; leave it out if it bounds nothing", nil)
	}
	return nil
}

// plain reports whether every database takes s as a text.
func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// contextOf returns what a cursor of a question with these fields is tied to.
func contextOf(kind string, fields ...any) string {
	text, err := json.Marshal(fields)
	if err != nil { // texts, numbers, and times in the years 1 to 9999 have a JSON form
		return kind
	}
	return kind + string(text)
}

// listInput is the question for a list of events.
type listInput struct {
	Filter
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" doc:"That of the page before."`
}

// EventList is a part of a list of events.
type EventList struct {
	Events     []Event    `json:"events" nullable:"false"`
	Cursor     string     `json:"cursor,omitempty" doc:"Pass it to get the next page. Missing: this is the last."`
	Incomplete bool       `json:"incomplete,omitempty" doc:"The search stopped before the page was full and before everything was looked at: there may be more, and the cursor goes on."`
	LookedTo   *time.Time `json:"looked_to,omitempty" doc:"With a cursor: how far back was looked, newest first."`
}

// scanTime is how long one request looks for events through pages that have none.
const scanTime = 2 * time.Second

// list answers with a page. Where few events match it looks on for a while, so that most answers are
// full pages; one that is not, but has a cursor, is not the last, and says so.
func (a *api) list(ctx context.Context, in *listInput) (*answer[EventList], error) {
	f, err := in.journal("query")
	if err != nil {
		return nil, err
	}
	content, err := a.content(&in.Filter, "query.field")
	if err != nil {
		return nil, err
	}
	timeless := f // pages only go back, and whoever writes 7d means another time at each of them
	timeless.Since, timeless.Until = time.Time{}, time.Time{}
	tied := contextOf("events", timeless, in.Field)
	from, err := decode(in.Cursor, tied, "query.cursor")
	if err != nil {
		return nil, err
	}
	out := &answer[EventList]{EventList{Events: []Event{}}}
	err = a.ask(ctx, readTime, func(ctx context.Context) error {
		end := time.Now().Add(scanTime)
		for first := true; first || from.at != 0 && len(out.Body.Events) < in.Limit && time.Now().Before(end); first = false {
			page, err := a.page(ctx, f, content, from.at, in.Limit-len(out.Body.Events))
			switch {
			case err != nil && first:
				return err
			case err != nil:
				_ = a.problem(ctx, err) // what was found is worth more, and where to go on; the log has the error
				return nil
			}
			for i := range page.Events {
				out.Body.Events = append(out.Body.Events, newEvent(&page.Events[i]))
			}
			from.at = page.Next
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out.Body.Events) == 0 && in.Cursor == "" && from.at == 0 { // a source that is not configured any more may have some
		if err := a.knownSource("query.source", in.Source); err != nil {
			return nil, err
		}
	}
	if from.at != 0 {
		to := journal.IDTime(from.at).UTC()
		out.Body.Cursor, out.Body.LookedTo = from.encode(tied), &to
		out.Body.Incomplete = len(out.Body.Events) < in.Limit
	}
	return out, nil
}

// page returns one look at the events, of which the content has to match as well.
func (a *api) page(ctx context.Context, f journal.Filter, c *content, before int64, limit int) (journal.Page, error) {
	if c == nil {
		return a.opt.Records.List(ctx, f, before, limit)
	}
	page, err := a.opt.Records.List(ctx, f, before, contentPiece)
	if err != nil {
		return journal.Page{}, err
	}
	events := make([]journal.Named, len(page.Events))
	for i, e := range page.Events {
		events[i] = journal.Named{EventID: e.ID, Source: e.Source}
	}
	matching, err := c.choose(ctx, a.opt.Records, events)
	if err != nil {
		return journal.Page{}, err
	}
	page.Events = slices.DeleteFunc(page.Events, func(e journal.Summary) bool { return !matching[e.ID] })
	if len(page.Events) > limit {
		page.Events, page.Next = page.Events[:limit], page.Events[limit-1].ID
	}
	return page, nil
}
