package api

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/loglimit"
)

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

// Health is how a destination stands: one that is ill only gets probes, and one that recovers gets more and more.
type Health struct {
	State string     `json:"state" enum:"healthy,ill,recovering"`
	Since *time.Time `json:"since,omitempty" doc:"When it was found ill, or began to recover."`
	Error string     `json:"error,omitempty" doc:"Of an ill one: what the last attempt came to."`
	Probe *time.Time `json:"probe,omitempty" doc:"Of an ill one: when it is tried again at the latest."`
	Limit int        `json:"limit" doc:"How many attempts may be under way at once now."`
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
}

// DestinationList lists destinations by name.
type DestinationList struct {
	Destinations []Destination `json:"destinations" nullable:"false"`
	Gateways     []Gateway     `json:"gateways" nullable:"false" doc:"The processes on the store, the longest running first."`
}

// destinations joins what the gateways know with what is in the store.
func (a *api) destinations(ctx context.Context, _ *struct{}) (*answer[DestinationList], error) {
	var open []journal.OpenCount
	var pauses []journal.Pause
	var fleet []member
	err := a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		if pauses, err = a.opt.Records.Pauses(ctx); err != nil {
			return err
		}
		if fleet, err = a.fleet(ctx); err != nil {
			return err
		}
		open, err = a.opt.Records.Open(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := map[string]*Destination{}
	named := func(name string) *Destination {
		if all[name] == nil {
			all[name] = &Destination{Name: name, Gateways: []Stand{}, Open: []Open{}}
		}
		return all[name]
	}
	out := &answer[DestinationList]{DestinationList{Destinations: []Destination{}, Gateways: []Gateway{}}}
	for i := range fleet {
		m := &fleet[i]
		out.Body.Gateways = append(out.Body.Gateways, m.Gateway)
		for n := range m.targets {
			if t := &m.targets[n]; !m.Gone {
				named(t.Name).describe(m, t)
			}
		}
	}
	for _, p := range pauses {
		named(p.Destination).Pause = &Pause{p.At.UTC(), p.By, p.Reason}
	}
	for _, c := range open {
		d := named(c.Destination)
		d.Open = append(d.Open, Open{string(c.State), c.Count, c.Oldest.UTC()})
	}
	for _, d := range all {
		out.Body.Destinations = append(out.Body.Destinations, *d)
	}
	slices.SortFunc(out.Body.Destinations, func(a, b Destination) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

type pauseInput struct {
	Name string `path:"name" maxLength:"64"`
	Body struct {
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	}
}

// PauseResult says what became of a request to pause or resume.
type PauseResult struct {
	Name    string `json:"name"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed" doc:"False: it was so before."`
}

func (a *api) pause(ctx context.Context, in *pauseInput) (*answer[PauseResult], error) {
	return a.setPaused(ctx, in, true)
}

func (a *api) resume(ctx context.Context, in *pauseInput) (*answer[PauseResult], error) {
	return a.setPaused(ctx, in, false)
}

// setPaused changes a destination that exists; one that is not configured any more can be resumed.
func (a *api) setPaused(ctx context.Context, in *pauseInput, paused bool) (*answer[PauseResult], error) {
	if !plain(in.Body.Reason) {
		return nil, invalid("body.reason", "this is not readable text", nil)
	}
	if !plain(in.Name) {
		return nil, errNoDestination
	}
	p := journal.Pause{Destination: in.Name, At: a.opt.Now(), By: actor(ctx), Reason: in.Body.Reason}
	out := &answer[PauseResult]{PauseResult{Name: in.Name, Paused: paused}}
	err := a.ask(ctx, writeTime, func(ctx context.Context) (err error) {
		if paused {
			if err := a.known(ctx, in.Name); err != nil {
				return err
			}
		}
		out.Body.Changed, err = a.opt.Journal.SetPaused(ctx, p, paused)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Body.Changed {
		loglimit.Unbound(a.opt.Logger).LogAttrs(ctx, slog.LevelInfo, "api: a destination is paused or resumed", slog.String("destination", in.Name),
			slog.Bool("paused", paused), slog.String("by", p.By), slog.String("reason", p.Reason))
	}
	return out, nil
}

var errNoDestination = huma.Error404NotFound("there is no such destination in any gateway; GET " + Base + "/destinations lists them")

// known returns an error unless a gateway delivers to the destination.
func (a *api) known(ctx context.Context, name string) error {
	fleet, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	for i := range fleet {
		if slices.ContainsFunc(fleet[i].targets, func(t Target) bool { return t.Name == name }) {
			return nil
		}
	}
	return errNoDestination
}
