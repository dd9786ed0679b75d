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
	rules := alert.Settings{}
	if a.opt.Rules != nil {
		rules = a.opt.Rules()
	}
	return &answer[Overview]{Overview{rules.Judge(s), a.attended.get(ctx, &a.opt), *s}}, nil
}
