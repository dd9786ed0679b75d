package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/schedule"
)

// compareNow compares a source because somebody asks for it, who says when and what to do, and nothing of the events: the sender
// alone is asked for those, with the token of the configuration that runs. It implements [api.Options.Compare].
func (g *Gateway) compareNow(ctx context.Context, by, source string, asked api.Comparison) (json.RawMessage, error) {
	r, err := g.compareAsked(ctx, by, source, asked)
	if r == nil {
		return nil, err
	}
	g.opt.Logger.Info("reconcile: a source was compared because somebody asked", "source", source, "by", by, "listed", r.Listed, "missing", r.Missing,
		"redelivered", r.Redelivered, "stored", r.Stored, "failed", r.Failed)
	text, failed := json.Marshal(r)
	return text, errors.Join(err, failed)
}

func (g *Gateway) compareAsked(ctx context.Context, by, source string, asked api.Comparison) (r *reconcile.Report, err error) {
	p := &g.wired.Load().plan
	if _, err := p.comparable(source); err != nil {
		return nil, &api.Refused{Detail: err.Error(), Invalid: true}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.reconciling.ctx, func() { cancel(context.Cause(g.reconciling.ctx)) })()
	c := Comparison{
		Source: source, Since: asked.Since, Redeliver: asked.Action == config.Redeliver, Ingest: asked.Action == config.Ingest, Really: asked.Really,
		Refused: func(_ context.Context, source string, keys []string) (map[string]string, error) {
			last, _ := g.handler.Refusals().Of(source)
			return refused(last, keys), nil
		},
	}
	if asked.Until != nil {
		c.Until = *asked.Until
	}
	err = schedule.Alone(ctx, g.store, g.opt.Now, source, func(ctx context.Context) (err error) {
		if err := g.announceComparison(ctx, by, c); err != nil {
			return err
		}
		if r, err = p.compare(ctx, c, g.opt, g.store, g.known, g.ingestListed); r == nil && ctx.Err() == nil {
			return &api.Refused{Detail: err.Error(), Invalid: true}
		}
		return err
	})
	switch {
	case r != nil:
		err = errors.Join(err, conclude(ctx, g.store, c, r, err == nil, by, g.opt.Now()))
	case errors.Is(err, schedule.ErrBusy):
		err = &api.Refused{Detail: fmt.Sprintf("source %q: %v", source, err)}
	case errors.Is(err, ErrStopping):
		err = &api.Refused{Detail: err.Error()}
	}
	return r, err
}

// announceComparison puts on record what somebody is about to have done, so that nothing is done that is not.
func (g *Gateway) announceComparison(ctx context.Context, by string, c Comparison) error {
	what := "stored from its sender's list"
	switch {
	case c.Redeliver:
		what = "sent again by its sender"
	case !c.Ingest:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	reason := fmt.Sprintf("asked for: what never arrived since %s is to be %s", c.Since.UTC().Format(time.RFC3339), what)
	if err := g.store.RecordAudit(ctx, journal.Audit{At: g.opt.Now(), By: by, Action: journal.ActionReconcile, Filter: c.Source, Reason: reason}); err != nil {
		return fmt.Errorf("nothing was done, because the audit log cannot be written: %w", err)
	}
	return nil
}
