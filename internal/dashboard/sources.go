package dashboard

import (
	"net/http"
	"slices"

	"github.com/hookonce/hookonce/internal/api"
)

// sourcesView lists sources.
type sourcesView struct{ api.SourceList }

func (d *dashboard) sources(r *http.Request) (*page, error) {
	var v sourcesView
	if err := d.get(r.Context(), "/sources", nil, &v.SourceList); err != nil {
		return nil, err
	}
	return &page{Title: "Sources", Place: "/sources", Again: 10, Data: v, Commands: []command{{"Show them", "hookonce config show"}}}, nil
}

// sourceView is one source.
type sourceView struct {
	api.Source
	Numbers []Chart `json:"numbers,omitempty"` // of the week
}

func (d *dashboard) source(r *http.Request) (*page, error) {
	var all api.SourceList
	if err := d.get(r.Context(), "/sources", nil, &all); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	i := slices.IndexFunc(all.Sources, func(s api.Source) bool { return s.Name == name })
	if i < 0 {
		return nil, refusal(http.StatusNotFound, "there is no such source in this gateway")
	}
	v := sourceView{Source: all.Sources[i]}
	if w, ok := d.week(r.Context(), name, "", "received", "accepted", "reseen", "conflicts", "age:*"); ok {
		v.Numbers = []Chart{
			w.Count("Requests received", "requests", "received"), w.Count("Events accepted", "events", "accepted"),
			w.Rate("Events that came again", "reseen", "accepted", "events"), w.Ages(), w.Count("Conflicts: same key, other content", "conflicts", "conflicts"),
		}
	}
	return &page{Title: name, Place: "/sources", Again: 10, Data: v, Commands: []command{
		{"Its events", "hookonce events list --source " + quoted(name)}, {"What was counted", "hookonce history --source " + quoted(name)},
		{"What was refused", "hookonce refusals " + quoted(name)},
	}}, nil
}
