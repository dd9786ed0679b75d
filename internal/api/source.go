package api

import "context"

// Source is an inbound endpoint.
type Source struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Path         string   `json:"path" example:"/in/billing"`
	Destinations []string `json:"destinations" nullable:"false" doc:"Where its events may go."`
	SendsAgain   int64    `json:"sends_again_seconds,omitempty" doc:"For how long after an event its provider is known to send it again by itself. Missing: it does not, or that is not known."`
	SentOnDemand int64    `json:"sent_on_demand_seconds,omitempty" doc:"For how long after an event its provider is known to send it again when a person asks for it. Missing: it does not, or that is not known."`
}

// SourceList lists the sources of this process.
type SourceList struct {
	Sources []Source `json:"sources" nullable:"false"`
}

func (a *api) sources(context.Context, *struct{}) (*answer[SourceList], error) {
	return &answer[SourceList]{SourceList{append([]Source{}, a.opt.Sources()...)}}, nil
}
