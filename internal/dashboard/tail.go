package dashboard

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// tailView is what came last; with the script, what comes is put on top of it.
type tailView struct {
	Filter Filter `json:"filter"`
	api.EventList
	Sources []string `json:"-"`
	Wrong   string   `json:"wrong,omitempty"` // with the filter
	Stream  string   `json:"-"`               // the address of what comes
}

// States are what may be chosen.
func (tailView) States() []string { return eventsView{}.States() }

// tailOverlap is how far back the stream begins before the list was read, so that nothing is between the two. What is in both
// is shown once.
const tailOverlap = 30 * time.Second

func (d *dashboard) tail(r *http.Request) (*page, error) {
	now := d.opt.Now()
	v := tailView{Filter: readFilter(r.URL.Query(), now)}
	maps.DeleteFunc(v.Filter, func(name, _ string) bool { return name != "source" && name != "type" && name != "state" })
	err := d.get(r.Context(), "/events", v.Filter.Query(), &v.EventList)
	var why *Refusal
	if errors.As(err, &why) && why.Status == http.StatusUnprocessableEntity && !frame.WantsData(r) {
		v.Wrong, err = why.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	if v.Wrong == "" {
		query := v.Filter.Query()
		query.Set("since", now.Add(-tailOverlap).UTC().Format(time.RFC3339))
		v.Stream = "/tail/stream?" + query.Encode()
	}
	v.Sources, _ = namesOf(d.sourceList(r.Context()))
	return &page{Title: "Tail", Place: "/tail", Data: v, Commands: []command{{"Follow these", "hookonce tail" + v.Filter.Flags()}}}, nil
}

// stream hands on the API's stream, on account of the visitor.
func (d *dashboard) stream(w http.ResponseWriter, r *http.Request) {
	of := r.Clone(r.Context())
	of.URL = &url.URL{Path: api.Base + "/tail", RawQuery: r.URL.RawQuery}
	d.opt.API.ServeHTTP(w, of)
}
