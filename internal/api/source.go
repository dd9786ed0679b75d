package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Source is an inbound endpoint.
type Source struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	Path         string   `json:"path" example:"/in/billing"`
	Destinations []string `json:"destinations" nullable:"false" doc:"Where its events may go."`
	SendsAgain   int64    `json:"sends_again_seconds,omitempty" doc:"For how long after an event its provider is known to send it again by itself. Missing: it does not, or that is not known."`
	SentOnDemand int64    `json:"sent_on_demand_seconds,omitempty" doc:"For how long after an event its provider is known to send it again when a person asks for it. Missing: it does not, or that is not known."`
	NotCompared  string   `json:"not_compared,omitempty" doc:"Why gateways do not compare it by themselves with the list that its sender has of what it made, and what to do. Missing: they do."`
}

// SourceList lists the sources of this process.
type SourceList struct {
	Sources []Source `json:"sources" nullable:"false"`
}

func (a *api) sources(context.Context, *struct{}) (*answer[SourceList], error) {
	return &answer[SourceList]{SourceList{append([]Source{}, a.opt.Sources()...)}}, nil
}

// maxNamed is how many sources are named to whoever names none of them.
const maxNamed = 20

// source returns one by its name. ok is false if this gateway has none of that name, and then text says so, and which it has.
func (a *api) source(name string) (found Source, text string, ok bool) {
	all := a.opt.Sources()
	if i := slices.IndexFunc(all, func(s Source) bool { return s.Name == name }); i >= 0 {
		return all[i], "", true
	}
	known := []string{}
	for _, s := range all[:min(len(all), maxNamed)] {
		known = append(known, s.Name)
	}
	if len(all) > maxNamed {
		known = append(known, "and others")
	}
	has := "it has none"
	if len(known) > 0 {
		has = "it has " + strings.Join(known, ", ")
	}
	return Source{}, fmt.Sprintf("this gateway has no source %q; %s", name, has), false
}

// knownSource refuses, in the field at location, a source that this gateway does not have: nothing would ever come of it. No name
// is that of all sources.
func (a *api) knownSource(location, name string) error {
	if _, text, ok := a.source(name); !ok && name != "" {
		return invalid(location, text, nil)
	}
	return nil
}

// sourceAt returns the source that a path names, or the answer that there is none.
func (a *api) sourceAt(name string) (Source, error) {
	s, text, ok := a.source(name)
	if !ok {
		return s, huma.Error404NotFound(text)
	}
	return s, nil
}
