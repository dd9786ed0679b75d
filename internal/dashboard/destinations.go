package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
)

// destinationsView lists destinations, and the processes that deliver to them.
type destinationsView struct{ fleet.DestinationList }

// Oldest returns when the oldest event was accepted that is open at a destination, nil if none is.
func (destinationsView) Oldest(d fleet.Destination) *time.Time {
	var oldest *time.Time
	for i := range d.Open {
		if t := &d.Open[i].Oldest; oldest == nil || t.Before(*oldest) {
			oldest = t
		}
	}
	return oldest
}

func (d *dashboard) destinations(r *http.Request) (*page, error) {
	var v destinationsView
	if err := d.get(r.Context(), "/destinations", nil, &v.DestinationList); err != nil {
		return nil, err
	}
	return &page{Title: "Destinations", Place: "/destinations", Again: 5, Data: v, Commands: []command{{"List them", "hookonce destinations list"}}}, nil
}

// destinationView is one destination.
type destinationView struct {
	fleet.Destination
	Fleet   []fleet.Gateway `json:"-"`
	Numbers []Chart         `json:"numbers,omitempty"` // of the week
}

// Host returns that of the gateway with the identifier.
func (v destinationView) Host(id string) string {
	for _, g := range v.Fleet {
		if g.ID == id {
			return g.Host
		}
	}
	return id
}

// openOf counts the deliveries in one state.
func openOf(d fleet.Destination, state string) (count int64) {
	for _, o := range d.Open {
		if o.State == state {
			count += o.Count
		}
	}
	return count
}

func (d *dashboard) destination(r *http.Request) (*page, error) {
	var all fleet.DestinationList
	if err := d.get(r.Context(), "/destinations", nil, &all); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	i := slices.IndexFunc(all.Destinations, func(d fleet.Destination) bool { return d.Name == name })
	if i < 0 {
		return nil, refusal(http.StatusNotFound, "there is no such destination in any gateway")
	}
	v := destinationView{Destination: all.Destinations[i], Fleet: all.Gateways}
	if w, ok := d.week(r.Context(), "", name, "first", "first_failed", "attempts", "done", "dead"); ok {
		v.Numbers = []Chart{w.Rate("First attempts that failed", "first_failed", "first", "first attempts"), w.Count("Delivered", "deliveries", "done"), w.Count("Given up", "deliveries", "dead")}
	}
	change := "pause"
	if v.Pause != nil {
		change = "resume"
	}
	return &page{Title: name, Place: "/destinations", Again: 5, Data: v, Commands: []command{
		{"Show it", "hookonce destinations list --all"},
		{strings.ToUpper(change[:1]) + change[1:] + " it", "hookonce destinations " + change + " " + quoted(name) + " --reason 'WHY'"},
		{"Its events", "hookonce events list --destination " + quoted(name) + " --state failed"},
	}}, nil
}

func (d *dashboard) pause(r *http.Request) (*page, error)  { return d.setPaused(r, "pause") }
func (d *dashboard) resume(r *http.Request) (*page, error) { return d.setPaused(r, "resume") }

// setPaused changes a destination, and leads back to it.
func (d *dashboard) setPaused(r *http.Request, change string) (*page, error) {
	name := r.PathValue("name")
	var done api.PauseResult
	in := map[string]string{"reason": strings.TrimSpace(r.PostFormValue("reason"))}
	if err := d.post(r.Context(), "/destinations/"+segment(name)+"/"+change, in, &done); err != nil {
		return nil, err
	}
	return &page{Data: done, To: "/destinations/" + segment(name)}, nil
}
