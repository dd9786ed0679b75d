package dashboard

import (
	"cmp"
	"net/http"

	"github.com/hookonce/hookonce/internal/api"
)

// refusedView is what of a source was refused, and how much of the others.
type refusedView struct {
	Source string `json:"source"` // "-": paths under which there is none
	api.RefusalList
	Others []refusedSource `json:"-"`
}

type refusedSource struct {
	Name  string
	Total int64
}

// unknownPaths stands for paths under which there is no source.
const unknownPaths = "-"

func (d *dashboard) refusedRequests(r *http.Request) (*page, error) {
	ctx := r.Context()
	names, _ := d.names(ctx)
	v := refusedView{Source: r.URL.Query().Get("source")}
	for _, name := range append(names, unknownPaths) {
		var list api.RefusalList
		if err := d.get(ctx, "/sources/"+segment(name)+"/refusals", nil, &list); err != nil {
			return nil, err
		}
		v.Others = append(v.Others, refusedSource{name, list.Total})
		if v.Source == name || v.Source == "" && list.Total > 0 {
			v.Source, v.RefusalList = name, list
		}
	}
	v.Source = cmp.Or(v.Source, v.Others[0].Name)
	return &page{Title: "Refused", Place: "/refused", Again: 10, Data: v, Commands: []command{{"List them", "hookonce refusals " + quoted(v.Source)}}}, nil
}
