package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/refusals"
)

// eventLog writes what became of the requests to one source, a line each, at a bounded rate: the journal
// is the record of all events, and nobody reads thousands of lines a second. What is held back is counted
// at the end of the second. The level debug lifts the bound for events. Lines about what is not known to be authentic
// have the bounds of package loglimit.
type eventLog struct {
	strange *slog.Logger
	events  *slog.Logger
	// kinds bound the lines about events, apart so that a flood of duplicates does not hide the events that want a
	// person's eye.
	kinds map[journal.Status]*loglimit.Kind
}

// maxEventLines is how many events of a source and status are logged per second.
const maxEventLines = 100

func newEventLog(to *slog.Logger, source string) eventLog {
	strange := loglimit.Bound(to).With("source", source)
	l := eventLog{strange: strange, events: loglimit.Unbound(strange), kinds: make(map[journal.Status]*loglimit.Kind, len(messages))}
	for status, message := range messages {
		l.kinds[status] = loglimit.Of(strange, eventLevel(status), message, maxEventLines)
	}
	return l
}

// eventLevel is a warning for what wants a person's eye: conflicts, unkeyed and unprotected events.
func eventLevel(s journal.Status) slog.Level {
	if s == journal.Conflict || s == journal.Unkeyed || s == journal.Unprotected {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// event logs one stored or recognised event, with the secret that matched if p names one, and what the
// signature covers where that is less than the body.
func (l eventLog) event(ctx context.Context, now time.Time, e *hookonce.Event, p hookonce.Proof, r journal.Result, routed bool) {
	level := eventLevel(r.Status)
	if !l.events.Enabled(ctx, level) || !l.events.Enabled(ctx, slog.LevelDebug) && !l.kinds[r.Status].Allow(now) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("key", e.Key), slog.String("type", e.Type), slog.String("event", journal.IDText(r.ID)))
	if e.Key != "" && !e.KeySigned {
		attrs = append(attrs, slog.Bool("key_signed", false))
	}
	if p.Secret > 0 {
		attrs = append(attrs, slog.Int("secret", p.Secret))
	}
	if p.Partial() {
		attrs = append(attrs, slog.String("covers", p.Covers))
	}
	if r.LogicalDuplicateOf != 0 {
		attrs = append(attrs, slog.String("logical_duplicate_of", journal.IDText(r.LogicalDuplicateOf)))
	}
	if !routed {
		attrs = append(attrs, slog.String("note", journal.Unrouted))
	}
	if r.Redriven {
		attrs = append(attrs, slog.Bool("redriven", true))
	}
	l.events.LogAttrs(ctx, level, messages[r.Status], attrs...)
}

var messages = map[journal.Status]string{
	journal.Accepted:  "event accepted",
	journal.Duplicate: "event is a duplicate",
	journal.Conflict:  "event has the key of another with other content; the first stands",
	journal.Unkeyed:   "event accepted without a key; its copies cannot be recognised",

	journal.Unprotected: "event delivered past the store, which is unavailable",
}

func (l eventLog) handshake(ctx context.Context) {
	l.strange.LogAttrs(ctx, slog.LevelInfo, "handshake answered")
}

func (l eventLog) unreadable(ctx context.Context, err error) {
	l.strange.LogAttrs(ctx, slog.LevelWarn, "verified request could not be read; it is passed on whole, with what its header says", slog.Any("error", err))
}

// rejected logs a request that was not acknowledged: a warning when the sender is at fault, an error
// when we are.
func (l eventLog) rejected(ctx context.Context, p *refusal, what refusals.Refusal, err error) {
	level := slog.LevelWarn
	if p.ours() {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("reason", what.Reason), slog.Int("status", what.Status), slog.String("path", what.Path),
		slog.String("address", what.Address), slog.Any("error", err),
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	l.strange.LogAttrs(ctx, level, "request rejected", attrs...)
}
