package hookonce

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce/internal/problem"
)

// reject logs and observes a request that came to nothing.
func (h *idempotency) reject(ctx context.Context, p *problem.Details) {
	h.log.WarnContext(ctx, "idempotent request rejected", "source", h.source, "reason", p.Type, "status", p.Status, "detail", p.Detail, "instance", p.Instance)
	h.observe(ctx, Observation{Source: h.source, Status: "rejected", Reason: p.Reason})
}

// report logs and observes what came of a call.
func (h *idempotency) report(c *call, res result, took time.Duration) {
	if errors.Is(res.err, ErrTooManyKeys) {
		h.reject(c.Context(), res.problem)
		return
	}
	ctx, status := c.Context(), res.status()
	h.observe(ctx, Observation{Source: c.Source, Type: c.kind, Status: status, Err: res.err, Duration: took})
	level := slog.LevelDebug
	switch status {
	case "failed", "dead":
		level = slog.LevelError
	case "conflict":
		level = slog.LevelWarn
	}
	if errors.Is(res.err, errNotKept) {
		level = slog.LevelWarn
	}
	if !h.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("source", c.Source), slog.String("key", c.Key), slog.String("type", c.kind), slog.Duration("took", took)}
	if res.problem != nil {
		attrs = append(attrs, slog.String("instance", res.problem.Instance))
	}
	if res.err != nil {
		attrs = append(attrs, slog.String("error", res.err.Error()))
	}
	h.log.LogAttrs(ctx, level, "idempotent request "+status, attrs...)
}
