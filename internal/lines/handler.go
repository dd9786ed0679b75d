package lines

import (
	"context"
	"fmt"
	stdlog "log"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"
)

// handler keeps what it hands on within the bounds of its log.
type handler struct {
	log *log
	to  slog.Handler
	own id // what the logger's own attributes say of the kind; to writes them by itself
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	kind := h.own
	kind.level, kind.message = r.Level, r.Message
	var marks []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if kind.note(a) {
			marks = append(marks, shorten(a))
		}
		return true
	})
	now := time.Now()
	if !h.log.of(kind, marks, h.to, now).Allow(now) {
		return nil
	}
	short := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(shorten(a))
		return true
	})
	return h.to.Handle(ctx, short)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	short := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		short[i] = shorten(a)
		derived.own.note(a)
	}
	derived.to = h.to.WithAttrs(short)
	return &derived
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.to = h.to.WithGroup(name)
	return &derived
}

// note takes over what an attribute says of the kind, and reports whether it does.
func (i *id) note(a slog.Attr) bool {
	var to *string
	switch a.Key {
	case "source":
		to = &i.source
	case "reason":
		to = &i.reason
	case "status":
		to = &i.status
	default:
		return false
	}
	*to = shorten(a).Value.String()
	return true
}

// shorten returns the attribute with at most [MaxValue] bytes of its value, or [MaxStack] of a stack.
func shorten(a slog.Attr) slog.Attr {
	most := MaxValue
	if a.Key == "stack" {
		most = MaxStack
	}
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Cut(v.String(), most))
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); len(text) > most {
			a.Value = slog.StringValue(Cut(text, most))
		}
	case slog.KindGroup:
		var all []slog.Attr
		for _, inner := range v.Group() {
			all = append(all, shorten(inner))
		}
		a.Value = slog.GroupValue(all...)
	}
	return a
}

// Cut returns the first bytes of a text, at most so many, and an ellipsis if there were more.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Std returns a logger for package net/http, which writes what it has to say about connections as free text. All of it
// is one kind of lines, with that level and message: the texts have addresses in them.
func Std(l *slog.Logger, level slog.Level, message string, args ...any) *stdlog.Logger {
	return stdlog.New(&texts{Bound(l).With(args...), level, message}, "", 0)
}

type texts struct {
	log     *slog.Logger
	level   slog.Level
	message string
}

// Write implements [io.Writer] for one text, which has a stack if it is about a panic.
func (t *texts) Write(text []byte) (int, error) {
	what, stack, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	attrs := []slog.Attr{slog.String("error", what)}
	if stack != "" {
		attrs = append(attrs, slog.String("stack", stack))
	}
	t.log.LogAttrs(context.Background(), t.level, t.message, attrs...)
	return len(text), nil
}
