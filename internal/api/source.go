package api

import "context"

// Source is an inbound endpoint.
type Source struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Path         string   `json:"path" example:"/in/billing"`
	Destinations []string `json:"destinations" nullable:"false" doc:"Where its events may go."`
}

// SourceList lists the sources of this process.
type SourceList struct {
	Sources []Source `json:"sources" nullable:"false"`
}

func (a *api) sources(context.Context, *struct{}) (*answer[SourceList], error) {
	return &answer[SourceList]{SourceList{append([]Source{}, a.opt.Sources()...)}}, nil
}
