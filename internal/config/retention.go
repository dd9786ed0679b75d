package config

import (
	"cmp"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// Retention says how long the parts of a finished event are kept, counted from when it was received.
type Retention struct {
	// IDs is for how long copies are recognised. None of the others is longer.
	IDs time.Duration
	// Bodies is for how long an event can be delivered again.
	Bodies time.Duration
	// Attempts is for how long it is known where an event was delivered, without which it cannot be
	// delivered there again either: at least as long as Bodies. Zero: just as long.
	Attempts time.Duration
	// Answers is for how long a copy gets the answer of the first, with mode: sync. Zero: as long as Bodies.
	Answers time.Duration
}

// RetentionOf returns the periods that hold for a source: its own, where it has them, and those of all
// sources. Without either, attempts and answers are kept as long as its bodies. Zero keeps for ever.
func (c *Config) RetentionOf(s *Source) Retention {
	r := Retention{
		IDs:      cmp.Or(s.Retention.IDs, c.Retention.IDs),
		Bodies:   cmp.Or(s.Retention.Bodies, c.Retention.Bodies),
		Attempts: cmp.Or(s.Retention.Attempts, c.Retention.Attempts),
		Answers:  cmp.Or(s.Retention.Answers, c.Retention.Answers),
	}
	r.Attempts, r.Answers = cmp.Or(r.Attempts, r.Bodies), cmp.Or(r.Answers, r.Bodies)
	return r
}

// retentionKeys are the settings of a period of retention.
const (
	keepIDs      = "retention.ids"
	keepBodies   = "retention.bodies"
	keepAttempts = "retention.attempts"
	keepAnswers  = "retention.answers"
)

// checkRetention holds the periods of all sources against each other, and then those of each that has its own.
func (l *loader) checkRetention() {
	l.checkPeriods(l.cfg.RetentionOf(&Source{}), "", func(keys ...string) place { return l.cfg.where(keys...) })
	for i := range l.cfg.Sources {
		s := &l.cfg.Sources[i]
		if _, own := s.within("retention."); own {
			l.checkPeriods(l.cfg.RetentionOf(s), " of source "+s.Name, func(keys ...string) place { return l.whereKept(s, keys...) })
		}
	}
}

// checkPeriods finds periods that make no sense together. where says which of some settings was written, and
// where.
func (l *loader) checkPeriods(r Retention, whose string, where func(keys ...string) place) {
	for _, longer := range []struct {
		key  string
		keep time.Duration
	}{{keepBodies, r.Bodies}, {keepAttempts, r.Attempts}, {keepAnswers, r.Answers}} {
		if longer.keep > r.IDs && (longer.key == keepBodies || longer.keep != r.Bodies) {
			l.fault(where(longer.key, keepIDs), "%s: %s%s is longer than retention.ids, %s; write at most that", longer.key, showDuration(longer.keep), whose, showDuration(r.IDs))
		}
	}
	if r.Attempts < r.Bodies {
		l.fault(where(keepAttempts, keepBodies), "%s: %s%s is shorter than retention.bodies, %s, and without its attempts an event cannot be delivered again; write at least that, or nothing",
			keepAttempts, showDuration(r.Attempts), whose, showDuration(r.Bodies))
	}
}

// whereKept returns the place that the first of the settings came from that the source has, or else all sources.
func (l *loader) whereKept(s *Source, keys ...string) place {
	for _, key := range keys {
		if s.has(key) {
			return s.where(key)
		}
	}
	return l.cfg.where(keys...)
}

// checkWindow refuses to forget ids sooner than after twice the time for which the provider sends an
// event again: below that time late copies would run twice for certain, and above it there is a margin.
func (l *loader) checkWindow(s *Source, known spec.Spec) {
	ids, window, keep := l.cfg.RetentionOf(s).IDs, known.Limits.Window(), known.Limits.Keep()
	if ids >= keep {
		return
	}
	at := l.whereKept(s, keepIDs)
	if at == (place{}) {
		at = s.at
	}
	l.fault(at, "retention.ids: ids are forgotten after %s, but %s sends events again for up to %s, and late copies must not count as new; write at least twice that, %s",
		showDuration(ids), known.Name, showDuration(window), showDuration(keep))
}
