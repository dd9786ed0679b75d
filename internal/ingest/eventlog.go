package ingest

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// eventLog writes what became of the requests to one source: a line for every event, and lines for
// rejected requests at a bounded rate, because anybody can cause those.
type eventLog struct {
	to *slog.Logger
	// theirs and ours bound the lines about the senders' mistakes and about our own failures. They
	// are apart so that a flood of the one does not hide the other.
	theirs, ours *limiter
}

// maxRejectedLines is how many rejected requests per second, source and side are logged one by one.
const maxRejectedLines = 10

func newEventLog(to *slog.Logger, source string) eventLog {
	return eventLog{
		to:     to.With("source", source),
		theirs: &limiter{perSecond: maxRejectedLines},
		ours:   &limiter{perSecond: maxRejectedLines},
	}
}

// event logs one stored or recognised event, with the secret that matched if p names one, and what the
// signature covers where that is less than the body. Conflicts and unkeyed events want a person's eye.
func (l eventLog) event(ctx context.Context, e *hookonce.Event, p hookonce.Proof, r journal.Result) {
	level := slog.LevelInfo
	if r.Status == journal.Conflict || r.Status == journal.Unkeyed {
		level = slog.LevelWarn
	}
	if !l.to.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 7)
	attrs = append(attrs, slog.String("key", e.Key), slog.String("type", e.Type), slog.Int64("event", r.ID))
	if e.Key != "" && !e.KeySigned {
		attrs = append(attrs, slog.Bool("key_signed", false))
	}
	if p.Secret > 0 {
		attrs = append(attrs, slog.Int("secret", p.Secret))
	}
	if p.Partial() {
		attrs = append(attrs, slog.String("covers", p.Covers))
	}
	if r.Redriven {
		attrs = append(attrs, slog.Bool("redriven", true))
	}
	l.to.LogAttrs(ctx, level, messages[r.Status], attrs...)
}

var messages = map[journal.Status]string{
	journal.Accepted:  "event accepted",
	journal.Duplicate: "event is a duplicate",
	journal.Conflict:  "event has the key of another with other content; the first stands",
	journal.Unkeyed:   "event accepted without a key; its copies can not be recognised",
}

func (l eventLog) handshake(ctx context.Context) {
	l.to.LogAttrs(ctx, slog.LevelInfo, "handshake answered")
}

func (l eventLog) unreadable(ctx context.Context, err error) {
	l.to.LogAttrs(ctx, slog.LevelWarn, "verified request could not be read; it is passed on whole", slog.Any("error", err))
}

// rejected logs a request that was not acknowledged: a warning when the sender is at fault, an error
// when we are.
func (l eventLog) rejected(ctx context.Context, now time.Time, p *problem, err error) {
	level, limit := slog.LevelWarn, l.theirs
	if p.ours() {
		level, limit = slog.LevelError, l.ours
	}
	suppressed, ok := limit.allow(now)
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("reason", p.reason), slog.Int("status", p.status), slog.Any("error", err)}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.to.LogAttrs(ctx, level, "request rejected", attrs...)
}
