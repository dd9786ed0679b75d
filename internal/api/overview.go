package api

import (
	"context"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/overview"
)

// Overview is how all stands, and what is wrong.
type Overview struct {
	Verdict  alert.Verdict `json:"verdict"`
	Attended []Attended    `json:"attended,omitempty" doc:"Alerts that are acknowledged or silenced."`
	overview.Snapshot
}

// overview answers from memory: however many ask, the store is asked once a second, and an answer comes while it is away.
func (a *api) overview(ctx context.Context, _ *struct{}) (*answer[Overview], error) {
	s, err := a.opt.Overview(ctx)
	if err != nil {
		return nil, a.problem(ctx, err)
	}
	return &answer[Overview]{Overview{a.rules().Judge(s), a.attended.get(ctx, &a.opt), *s}}, nil
}

// rules are how what is wrong is judged at the moment.
func (a *api) rules() alert.Settings {
	if a.opt.Rules == nil {
		return alert.Settings{}
	}
	return a.opt.Rules()
}
