// Package fleet joins what the gateways on one store say of themselves, and of their destinations, with
// what is in the store.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Records is what is read of the journal's store.
type Records interface {
	// Open counts the deliveries that are not done, see [journal.Reader].
	Open(ctx context.Context) ([]journal.OpenCount, error)
	// Pauses returns the destinations that are paused, see [journal.Operator].
	Pauses(ctx context.Context) ([]journal.Pause, error)
	// Gateways returns the processes on the store, see [journal.Registry].
	Gateways(ctx context.Context) ([]journal.Gateway, error)
}

// Reader asks for the gateways on a store and how their destinations stand. All fields are needed; it is safe for
// concurrent use.
type Reader struct {
	Records Records
	// Self is this process, as it tells the others on the store of itself. Seen and View are not looked at.
	Self journal.Gateway
	// Targets returns the destinations of this process as they are at the moment, by name.
	Targets func() []Target
	// Now is the clock.
	Now func() time.Time
	// Logger receives a line about a gateway that is not understood.
	Logger *slog.Logger
}

// Destinations joins what the gateways know with what is in the store. It counts the deliveries that are open, which
// reads all of them.
func (r *Reader) Destinations(ctx context.Context) (DestinationList, error) {
	list, err := r.Stands(ctx)
	if err != nil {
		return list, err
	}
	open, err := r.Records.Open(ctx)
	return list.WithOpen(open), err
}

// Stands is [Reader.Destinations] without the open deliveries: it is as cheap however many there are. A destination that no
// gateway delivers to is in it if it is paused.
func (r *Reader) Stands(ctx context.Context) (DestinationList, error) {
	list := DestinationList{Destinations: []Destination{}, Gateways: []Gateway{}}
	pauses, err := r.Records.Pauses(ctx)
	if err != nil {
		return list, err
	}
	members, err := r.members(ctx)
	if err != nil {
		return list, err
	}
	all := map[string]*Destination{}
	named := func(name string) *Destination {
		if all[name] == nil {
			all[name] = &Destination{Name: name, Gateways: []Stand{}, Open: []Open{}}
		}
		return all[name]
	}
	for i := range members {
		m := &members[i]
		list.Gateways = append(list.Gateways, m.Gateway)
		for n := range m.targets {
			if t := &m.targets[n]; !m.Gone {
				named(t.Name).describe(m, t)
			}
		}
	}
	for _, p := range pauses {
		named(p.Destination).Pause = &Pause{p.At.UTC(), p.By, p.Reason}
	}
	for _, d := range all {
		list.Destinations = append(list.Destinations, *d)
	}
	slices.SortFunc(list.Destinations, func(a, b Destination) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Delivers reports whether a gateway that is not forgotten delivers to a destination.
func (r *Reader) Delivers(ctx context.Context, name string) (bool, error) {
	members, err := r.members(ctx)
	return slices.ContainsFunc(members, func(m member) bool {
		return slices.ContainsFunc(m.targets, func(t Target) bool { return t.Name == name })
	}), err
}

// Delivering returns the destinations that a gateway delivers to which is not gone, by name; one is ordered if it is for any
// of them. All is false if one of these gateways is not understood: then there may be others.
func (r *Reader) Delivering(ctx context.Context) (targets map[string]Target, all bool, err error) {
	members, err := r.members(ctx)
	targets, all = map[string]Target{}, true
	for _, m := range members {
		if m.Gone {
			continue
		}
		all = all && m.understood
		for _, t := range m.targets {
			t.Ordered = t.Ordered || targets[t.Name].Ordered
			targets[t.Name] = t
		}
	}
	return targets, all, err
}

// member is a gateway with how it finds its destinations.
type member struct {
	Gateway
	targets    []Target
	understood bool // it says all of them
}

// members returns the gateways on the store, the longest running first. What this one says is of this moment, what the
// others say some seconds old.
func (r *Reader) members(ctx context.Context) ([]member, error) {
	known, err := r.Records.Gateways(ctx)
	if err != nil {
		return nil, err
	}
	now := r.Now()
	self := r.Self
	self.Seen = now
	known = append(slices.DeleteFunc(known, func(g journal.Gateway) bool { return g.ID == self.ID }), self)
	slices.SortStableFunc(known, func(a, b journal.Gateway) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	all := make([]member, len(known))
	for i, g := range known {
		all[i].Gateway = Gateway{g.ID, g.Host, g.PID, g.Version, g.Since.UTC(), g.Seen.UTC(), now.Sub(g.Seen) > Gone, g.ID == self.ID}
		if g.ID == self.ID {
			all[i].targets, all[i].understood = r.Targets(), true
		} else if err := json.Unmarshal(g.View, &all[i].targets); err == nil {
			all[i].understood = true
		} else {
			r.Logger.LogAttrs(ctx, slog.LevelWarn, "fleet: another gateway, of another version, is not understood", slog.String("version", g.Version), slog.Any("error", err))
		}
	}
	return all, nil
}

// DestinationList lists destinations by name.
type DestinationList struct {
	Destinations []Destination `json:"destinations" nullable:"false"`
	Gateways     []Gateway     `json:"gateways" nullable:"false" doc:"The processes on the store, the longest running first."`
}

// WithOpen returns l, which has no open deliveries yet, with these. It changes nothing of l, so that l may be joined with
// others later.
func (l DestinationList) WithOpen(open []journal.OpenCount) DestinationList {
	l.Destinations = append([]Destination{}, l.Destinations...)
	for _, c := range open {
		i, there := slices.BinarySearchFunc(l.Destinations, c.Destination, compareName)
		if !there {
			l.Destinations = slices.Insert(l.Destinations, i, Destination{Name: c.Destination, Gateways: []Stand{}, Open: []Open{}})
		}
		d := &l.Destinations[i]
		d.Open = append(d.Open, Open{string(c.State), c.Count, c.Oldest.UTC(), c.Since.UTC()})
	}
	return l
}

// Find returns the destination of that name. One of which nothing is known is not configured.
func (l DestinationList) Find(name string) *Destination {
	i, there := slices.BinarySearchFunc(l.Destinations, name, compareName)
	if !there {
		return &Destination{Name: name}
	}
	return &l.Destinations[i]
}

func compareName(d Destination, name string) int { return cmp.Compare(d.Name, name) }

// Destination is a place that events are delivered to, as it is at the moment.
type Destination struct {
	Name       string  `json:"name"`
	Configured bool    `json:"configured" doc:"False: no gateway delivers to it, but deliveries to it are open, or it is paused."`
	URL        string  `json:"url,omitempty"`
	Order      string  `json:"order,omitempty" enum:"none,by_resource"`
	Health     *Health `json:"health,omitempty" doc:"As the gateway finds it that finds it worst; limit is that of all of them."`
	Pause      *Pause  `json:"pause,omitempty" doc:"Missing: it is not paused."`
	Waiting    int     `json:"waiting" doc:"Deliveries that gateways hold for their turn."`
	Underway   int     `json:"underway" doc:"Attempts that are being made."`
	Gateways   []Stand `json:"gateways" nullable:"false" doc:"How each gateway finds it that delivers to it."`
	Open       []Open  `json:"open" nullable:"false" doc:"Deliveries in the store that are not done."`
}

// What deliveries to a destination may wait for although their time has come.
const (
	WaitsForResume        = "resume"        // it is paused
	WaitsForConfiguration = "configuration" // no gateway delivers to it
	WaitsForProbe         = "probe"         // it is ill: a try out of turn has to succeed first
)

// WaitsFor returns what a delivery whose time has come still waits for, or nothing.
func (d *Destination) WaitsFor() string {
	switch {
	case d.Pause != nil:
		return WaitsForResume
	case !d.Configured:
		return WaitsForConfiguration
	case d.Health != nil && d.Health.State == "ill":
		return WaitsForProbe
	}
	return ""
}

// describe adds how a gateway finds the destination. The destination is as bad as it is for any of them.
func (d *Destination) describe(m *member, t *Target) {
	if !d.Configured || m.Answers {
		d.URL, d.Order = t.URL, "none"
		if t.Ordered {
			d.Order = "by_resource"
		}
	}
	d.Configured = true
	d.Waiting += t.Waiting
	d.Underway += t.Underway
	d.Gateways = append(d.Gateways, Stand{m.ID, t.Health, t.Waiting, t.Underway})
	if d.Health == nil {
		d.Health = &Health{State: "healthy"}
	}
	limit := d.Health.Limit + t.Health.Limit
	if t.Health.worse(d.Health) {
		*d.Health = t.Health
	}
	d.Health.Limit = limit
}

// Health is how a destination stands: one that is ill only gets probes, and one that recovers gets more and more.
type Health struct {
	State string     `json:"state" enum:"healthy,ill,recovering"`
	Since *time.Time `json:"since,omitempty" doc:"When it was found ill, or began to recover."`
	Error string     `json:"error,omitempty" doc:"Of an ill one: what the last attempt came to."`
	Probe *time.Time `json:"probe,omitempty" doc:"Of an ill one: when it is tried again at the latest."`
	Limit int        `json:"limit" doc:"How many attempts may be under way at once now."`
}

// worse reports whether a destination stands worse here than there. Of two that are ill the one counts that is tried
// first.
func (h *Health) worse(than *Health) bool {
	severity := map[string]int{"recovering": 1, "ill": 2}
	if h.State != than.State {
		return severity[h.State] > severity[than.State]
	}
	return h.Probe != nil && (than.Probe == nil || h.Probe.Before(*than.Probe))
}

// Target is a destination of a process, as that finds it. Its JSON form is the [journal.Gateway.View].
type Target struct {
	Name    string
	URL     string // without password
	Ordered bool
	Health  Health
	// Waiting deliveries are held here for their turn, Underway are being made.
	Waiting, Underway int
}

// Pause is an operator's decision that nothing is delivered to a destination.
type Pause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// Open counts deliveries in one state.
type Open struct {
	State  string    `json:"state" enum:"pending,processing,failed,dead"`
	Count  int64     `json:"count"`
	Oldest time.Time `json:"oldest" doc:"When the oldest of the events was accepted."`
	Since  time.Time `json:"since" doc:"Since when the one waits that waits longest: since its event was accepted or, if it was dead or done and is replayed, since it was due then. To come: it is put off."`
}

// Gone is how long after its last word a gateway counts as gone. Gateways tell of themselves more often.
const Gone = 10 * time.Second

// Gateway is a process on the store: the one that answers, or another.
type Gateway struct {
	ID      string    `json:"id" doc:"Drawn at every start."`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since" doc:"When it started."`
	Seen    time.Time `json:"seen" doc:"When it last told of itself."`
	Gone    bool      `json:"gone,omitempty" doc:"It has not told of itself for a while, and did not stop in order: it was killed, or cannot reach the store. What it held is taken over by the others. After an hour it is forgotten."`
	Answers bool      `json:"answers,omitempty" doc:"This answer is its."`
}

// Stand is how one gateway finds a destination.
type Stand struct {
	Gateway  string `json:"gateway" doc:"Its identifier."`
	Health   Health `json:"health"`
	Waiting  int    `json:"waiting" doc:"Deliveries that it holds for their turn."`
	Underway int    `json:"underway" doc:"Attempts that it is making."`
}
