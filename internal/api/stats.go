package api

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// Stats counts what is in the store.
type Stats struct {
	Events     int64 `json:"events" doc:"In the journal; an estimate on Postgres."`
	Pending    int64 `json:"pending" doc:"Deliveries that wait for their first attempt, or were re-driven."`
	Processing int64 `json:"processing" doc:"Deliveries that are held by a process."`
	Failed     int64 `json:"failed" doc:"Deliveries that are tried again."`
	Dead       int64 `json:"dead" doc:"Deliveries that are not, unless somebody replays them or their senders send again."`
}

func (a *api) stats(ctx context.Context, _ *struct{}) (*answer[Stats], error) {
	var s journal.Stats
	err := a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		s, err = a.opt.Journal.Stats(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &answer[Stats]{Stats{
		Events: s.Events, Pending: s.Open[journal.Pending], Processing: s.Open[journal.Processing],
		Failed: s.Open[journal.Failed], Dead: s.Open[journal.Dead],
	}}, nil
}
