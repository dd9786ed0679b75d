package dashboard

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/hookonce/hookonce/internal/api"
)

// refusedView is what of a source was refused, and how much of the others.
type refusedView struct {
	Source string `json:"source"` // "-": paths under which there is none
	api.RefusalList
	Others []api.RefusalCount `json:"-"`
}

func (d *dashboard) refusedRequests(r *http.Request) (*page, error) {
	ctx := r.Context()
	var counts api.RefusalCounts
	if err := d.get(ctx, "/refusals", nil, &counts); err != nil {
		return nil, err
	}
	v := refusedView{Source: r.URL.Query().Get("source"), Others: counts.Sources}
	for _, of := range v.Others {
		if v.Source == "" && of.Total > 0 {
			v.Source = of.Source
		}
	}
	v.Source = cmp.Or(v.Source, v.Others[0].Source)
	// One that is not configured any more has none.
	if slices.ContainsFunc(v.Others, func(of api.RefusalCount) bool { return of.Source == v.Source }) {
		if err := d.get(ctx, "/sources/"+segment(v.Source)+"/refusals", nil, &v.RefusalList); err != nil {
			return nil, err
		}
	}
	return &page{Title: "Refused", Place: "/refused", Again: 10, Data: v, Commands: []command{{"List them", "hookonce refusals " + quoted(v.Source)}}}, nil
}
