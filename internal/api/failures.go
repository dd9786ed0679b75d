package api

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// resolvedSince is how far back failures are looked for of which none is open any more.
const resolvedSince = 24 * time.Hour

// FailureGroup is what failed at one destination for one reason.
type FailureGroup struct {
	Destination string          `json:"destination"`
	Kind        string          `json:"error" doc:"The kind of error, one of a closed set: status, timeout, dns, refused, reset, unreachable, tls, address, invalid, body_gone, other. It is the error of a filter."`
	Status      int             `json:"status,omitempty" doc:"Of the answers, if there were any. It is the status of a filter."`
	Text        string          `json:"text" doc:"What the latest sample says."`
	Count       int64           `json:"count" doc:"Open: deliveries that are failed or dead. Resolved: attempts that failed."`
	AtLeast     bool            `json:"at_least,omitempty" doc:"There are more: counting ends at 10000."`
	Dead        int64           `json:"dead" doc:"How many of them are dead."`
	Since       time.Time       `json:"since" doc:"When the first attempt failed of the oldest event that is open; resolved: the first that failed in the time that was looked at."`
	Latest      time.Time       `json:"latest" doc:"When the last attempt began that failed so."`
	Samples     []FailureSample `json:"samples" nullable:"false" doc:"Of the newest events, three at most."`
}

// FailureSample is a delivery that failed.
type FailureSample struct {
	ID      string     `json:"id"`
	Source  string     `json:"source"`
	Key     string     `json:"key,omitempty" doc:"Missing: the event has none."`
	Type    string     `json:"type"`
	State   string     `json:"state" enum:"pending,processing,failed,dead,done" doc:"Of the delivery now."`
	Started *time.Time `json:"started_at,omitempty" doc:"When the attempt began. Missing: there was none."`
	Text    string     `json:"text"`
	Answer  string     `json:"answer,omitempty" doc:"How the destination's answer began."`
}

// FailureList lists groups of failures.
type FailureList struct {
	Open     []FailureGroup `json:"open" nullable:"false" doc:"What is failed or dead now. What is being tried at this moment is in no group."`
	Resolved []FailureGroup `json:"resolved" nullable:"false" doc:"What failed since resolved_since, and of which nothing is open any more."`
	Since    time.Time      `json:"resolved_since"`
	More     bool           `json:"more,omitempty" doc:"A destination has more than fifty groups, which are left out."`
}

func (a *api) failures(ctx context.Context, _ *struct{}) (*answer[FailureList], error) {
	out := &answer[FailureList]{FailureList{Since: a.opt.Now().Add(-resolvedSince).UTC()}}
	err := a.ask(ctx, readTime, func(ctx context.Context) error {
		f, err := a.opt.Records.FailureGroups(ctx, out.Body.Since)
		out.Body.Open, out.Body.Resolved, out.Body.More = newGroups(f.Open), newGroups(f.Resolved), f.More
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func newGroups(all []journal.FailureGroup) []FailureGroup {
	groups := make([]FailureGroup, 0, len(all))
	for _, g := range all {
		one := FailureGroup{Destination: g.Destination, Kind: string(g.Kind), Status: g.Status, Text: g.Error, Count: g.Count, AtLeast: g.AtLeast,
			Dead: g.Dead, Since: g.Since.UTC(), Latest: g.Latest.UTC(), Samples: []FailureSample{}}
		for _, s := range g.Samples {
			one.Samples = append(one.Samples, newSample(&s))
		}
		groups = append(groups, one)
	}
	return groups
}

func newSample(s *journal.FailureSample) FailureSample {
	one := FailureSample{ID: journal.IDText(s.EventID), Source: s.Source, Key: s.Key, Type: s.Type, State: string(s.State), Text: s.Error, Answer: answerText(s.Excerpt)}
	if !s.Started.IsZero() {
		at := s.Started.UTC()
		one.Started = &at
	}
	return one
}
