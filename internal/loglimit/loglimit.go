// Package loglimit bounds what strangers can write into a log: lines of one kind, lines of all kinds together, and the
// length of the values in them. What is held back is counted, and told at the end of the second: a rate limit
// for log lines.
package loglimit

import (
	"context"
	"fmt"
	stdlog "log"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The bounds of one log.
const (
	// PerKind is how many lines of one kind are written per second.
	PerKind = 10
	// PerLog is how many lines are written per second of all kinds together.
	PerLog = 100
	// Rest is the time after which a kind that was silent gets one line beyond PerLog, so that a flood of others does
	// not hide it.
	Rest = 10 * time.Second
	// MaxKinds is how many kinds are told apart. Further ones share the bounds of one.
	MaxKinds = 1024
	// MaxCounts is how many lines per second say how many lines of a kind were held back. One more has the sum of the
	// other kinds.
	MaxCounts = 20
	// MaxValue is how many bytes of a value are written, and MaxStack how many of a stack.
	MaxValue = 512
	MaxStack = 8 << 10
)

// Bound returns a logger that writes to what l writes to, within the bounds. Lines are of one kind if they have the
// same level and message, and the same texts and numbers under the names source, reason and status: none of these may be
// made up by strangers. Loggers that are derived from the one that is returned share its bounds, and Bound returns them
// as they are.
func Bound(l *slog.Logger) *slog.Logger {
	if _, bounded := l.Handler().(*handler); bounded {
		return l
	}
	return slog.New(&handler{to: l.Handler(), log: &log{kinds: map[id]*Kind{}}})
}

// Unbound returns a logger without the bounds of l, for lines that no stranger causes, or that ask a [Kind].
func Unbound(l *slog.Logger) *slog.Logger {
	if h, bounded := l.Handler().(*handler); bounded {
		return slog.New(h.to)
	}
	return l
}

// Flush writes how many lines were held back by the bounds of l and not told yet.
func Flush(l *slog.Logger) {
	if h, bounded := l.Handler().(*handler); bounded {
		h.log.settle()
	}
}

// Suppressed returns how many lines were held back by the bounds of l so far. Of a logger without bounds that is 0.
func Suppressed(l *slog.Logger) int64 {
	h, bounded := l.Handler().(*handler)
	if !bounded {
		return 0
	}
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	return h.log.total
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

// log is what the loggers that share their bounds have in common.
type log struct {
	mu    sync.Mutex
	kinds map[id]*Kind
	all   second
	held  []*Kind // of which something was held back since the last settle
	total int64   // lines that were held back so far
	due   bool    // a settle is on its way
}

// second counts what happened in the current second.
type second struct {
	since time.Time
	n     int
}

// roll begins a new second if the last one is over at now.
func (s *second) roll(now time.Time) {
	if d := now.Sub(s.since); d >= time.Second || d < 0 {
		s.since, s.n = now, 0
	}
}

// Kind is one kind of lines, and how many of them there may be.
type Kind struct {
	log       *log
	level     slog.Level
	message   string
	marks     []slog.Attr  // what tells it from others with the same message, where to does not write it by itself
	to        slog.Handler // of the newest line
	perSecond int
	apart     bool // from PerLog

	second
	last time.Time // when one was written
	held int
}

// id tells kinds apart.
type id struct {
	level                           slog.Level
	message, source, reason, status string
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

// Of returns a kind of lines of l that has a bound of its own, beside [PerLog]. Whoever writes such lines asks it, and
// writes to [Unbound]. It is for lines that only authentic requests cause.
func Of(l *slog.Logger, level slog.Level, message string, perSecond int) *Kind {
	h := Bound(l).Handler().(*handler)
	return &Kind{log: h.log, level: level, message: message, to: h.to, perSecond: perSecond, apart: true}
}

// Allow reports whether one more line may be written at now, and counts it if not.
func (k *Kind) Allow(now time.Time) bool {
	k.log.mu.Lock()
	defer k.log.mu.Unlock()
	k.roll(now)
	if k.n < k.perSecond && k.fits(now) {
		k.n, k.last = k.n+1, now
		return true
	}
	k.log.total++
	if k.held++; k.held == 1 {
		k.log.held = append(k.log.held, k)
		if !k.log.due {
			k.log.due = true
			time.AfterFunc(time.Second, k.log.end)
		}
	}
	return false
}

// fits reports whether there is room for one more line beside those of other kinds, and takes it.
func (k *Kind) fits(now time.Time) bool {
	if k.apart {
		return true
	}
	k.log.all.roll(now)
	if k.log.all.n >= PerLog && now.Sub(k.last) < Rest {
		return false
	}
	k.log.all.n++
	return true
}

// of returns the kind of that id, whose lines have these marks and go to a handler.
func (l *log) of(i id, marks []slog.Attr, to slog.Handler, now time.Time) *Kind {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[i]
	if k == nil {
		if len(l.kinds) >= MaxKinds && !l.sweep(now) {
			i, marks = id{level: slog.LevelWarn, message: otherKinds}, nil
			k = l.kinds[i]
		}
		if k == nil {
			k = &Kind{log: l, level: i.level, message: i.message, marks: marks, perSecond: PerKind}
			l.kinds[i] = k
		}
	}
	k.to = to
	return k
}

// otherKinds stands for the message where lines of several kinds are counted together.
const otherKinds = "lines of other kinds"

// sweep forgets the kinds that were silent for long, and reports whether there were any.
func (l *log) sweep(now time.Time) bool {
	for i, k := range l.kinds {
		if k.held == 0 && now.Sub(k.last) >= Rest {
			delete(l.kinds, i)
		}
	}
	return len(l.kinds) < MaxKinds
}

// count says how many lines of a kind were held back.
type count struct {
	level   slog.Level
	message string
	marks   []slog.Attr
	to      slog.Handler
	held    int
}

// end is the end of a second in which something was held back.
func (l *log) end() {
	l.mu.Lock()
	l.due = false
	l.mu.Unlock()
	l.settle()
}

// settle writes what was held back since the last time.
func (l *log) settle() {
	for _, c := range l.counts() {
		c.write()
	}
}

// counts returns what was held back since the last time, and begins anew.
func (l *log) counts() (counts []count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.held {
		c := count{k.level, k.message, k.marks, k.to, k.held}
		k.held = 0
		if len(counts) <= MaxCounts {
			counts = append(counts, c)
			continue
		}
		sum := &counts[MaxCounts]
		sum.level, sum.message, sum.marks, sum.held = max(sum.level, c.level), otherKinds, nil, sum.held+c.held
	}
	l.held = nil
	return counts
}

// write writes the count in the form of a line of its kind. A handler that panics, as that of a test that has ended
// does, has nobody here whom it could tell.
func (c count) write() {
	defer func() { _ = recover() }()
	ctx := context.Background()
	if !c.to.Enabled(ctx, c.level) {
		return
	}
	r := slog.NewRecord(time.Now(), c.level, c.message, 0)
	r.AddAttrs(c.marks...)
	r.AddAttrs(slog.Int("suppressed", c.held))
	_ = c.to.Handle(ctx, r) // loggers ignore it too
}
