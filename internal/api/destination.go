package api

import (
	"context"
	"log/slog"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// destinations joins what the gateways know with what is in the store.
func (a *api) destinations(ctx context.Context, _ *struct{}) (*answer[fleet.DestinationList], error) {
	out := new(answer[fleet.DestinationList])
	err := a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		out.Body, err = a.fleet().Destinations(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// fleet asks the gateways on the store.
func (a *api) fleet() *fleet.Reader {
	return &fleet.Reader{Records: a.opt.Records, Self: a.opt.Self, Targets: a.opt.Targets, Now: a.opt.Now, Logger: a.opt.Logger}
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

// setPaused changes a destination that exists. One that is not configured any more can be resumed, so resuming looks for the name only
// where nothing was paused under it.
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
		if err == nil && !paused && !out.Body.Changed {
			err = a.known(ctx, in.Name)
		}
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
	configured, err := a.fleet().Delivers(ctx, name)
	if err == nil && !configured {
		return errNoDestination
	}
	return err
}
