package ingest

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// eventLog writes what became of the requests to one source, a line each, at a bounded rate: the journal
// is the record of all events, and nobody reads thousands of lines a second. What is held back is counted
// in the next line. The level debug lifts the bound for events.
type eventLog struct {
	to *slog.Logger
	// usual bounds the lines about accepted events and duplicates, odd those about events that want a
	// person's eye, theirs and ours those about the senders' mistakes and about our own failures. They
	// are apart so that a flood of the one does not hide the other.
	usual, odd, theirs, ours *limiter
}

// How many events and rejected requests per second, source and kind are logged one by one.
const (
	maxEventLines    = 100
	maxRejectedLines = 10
)

func newEventLog(to *slog.Logger, source string) eventLog {
	return eventLog{
		to:     to.With("source", source),
		usual:  &limiter{perSecond: maxEventLines},
		odd:    &limiter{perSecond: maxEventLines},
		theirs: &limiter{perSecond: maxRejectedLines},
		ours:   &limiter{perSecond: maxRejectedLines},
	}
}

// event logs one stored or recognised event, with the secret that matched if p names one, and what the
// signature covers where that is less than the body. Conflicts, unkeyed
// and unprotected events want a person's eye.
func (l eventLog) event(ctx context.Context, now time.Time, e *hookonce.Event, p hookonce.Proof, r journal.Result, routed bool) {
	level, limit := slog.LevelInfo, l.usual
	if r.Status == journal.Conflict || r.Status == journal.Unkeyed || r.Status == journal.Unprotected {
		level, limit = slog.LevelWarn, l.odd
	}
	if !l.to.Enabled(ctx, level) {
		return
	}
	suppressed, ok := 0, true
	if !l.to.Enabled(ctx, slog.LevelDebug) {
		suppressed, ok = limit.allow(now)
	}
	if !ok {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
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
	if r.Twin != 0 {
		attrs = append(attrs, slog.Int64("twin_of", r.Twin))
	}
	if !routed {
		attrs = append(attrs, slog.String("note", journal.Unrouted))
	}
	if r.Redriven {
		attrs = append(attrs, slog.Bool("redriven", true))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.to.LogAttrs(ctx, level, messages[r.Status], attrs...)
}

var messages = map[journal.Status]string{
	journal.Accepted:  "event accepted",
	journal.Duplicate: "event is a duplicate",
	journal.Conflict:  "event has the key of another with other content; the first stands",
	journal.Unkeyed:   "event accepted without a key; its copies can not be recognised",

	journal.Unprotected: "event delivered past the store, which is unavailable",
}

func (l eventLog) handshake(ctx context.Context) {
	l.to.LogAttrs(ctx, slog.LevelInfo, "handshake answered")
}

func (l eventLog) unreadable(ctx context.Context, err error) {
	l.to.LogAttrs(ctx, slog.LevelWarn, "verified request could not be read; it is passed on whole", slog.Any("error", err))
}

// rejected logs a request that was not acknowledged: a warning when the sender is at fault, an error
// when we are.
func (l eventLog) rejected(ctx context.Context, now time.Time, p *problem, what Refusal, err error) {
	level, limit := slog.LevelWarn, l.theirs
	if p.ours() {
		level, limit = slog.LevelError, l.ours
	}
	suppressed, ok := limit.allow(now)
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("reason", what.Reason), slog.Int("status", what.Status), slog.String("path", what.Path),
		slog.String("address", what.From), slog.Any("error", err),
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.to.LogAttrs(ctx, level, "request rejected", attrs...)
}
