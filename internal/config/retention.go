package config

import (
	"time"

	"github.com/hookonce/hookonce/internal/settings"
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

// The settings of a period of retention.
const (
	keepIDs      = "retention.ids"
	keepBodies   = "retention.bodies"
	keepAttempts = "retention.attempts"
	keepAnswers  = "retention.answers"
)

// retentionTable declares the settings of all sources; each source can have its own.
var retentionTable = settings.Table[Retention]{
	{Key: keepIDs, Default: "90d", Help: "`time` for which ids are remembered, so that late copies are recognised",
		Bind: func(r *Retention) settings.Value { return settings.Duration(&r.IDs, time.Minute, forever) }},
	{Key: keepBodies, Default: "7d", Help: "`time` for which bodies of finished events are kept",
		Bind: func(r *Retention) settings.Value { return settings.Duration(&r.Bodies, time.Minute, forever) }},
	{Key: keepAttempts, Help: "`time` for which the attempts of finished events are kept; as long as bodies if not set",
		Bind: func(r *Retention) settings.Value { return settings.Duration(&r.Attempts, time.Minute, forever) }},
	{Key: keepAnswers, Help: "`time` for which answers to waiting senders are kept for copies; as long as bodies if not set",
		Bind: func(r *Retention) settings.Value { return settings.Duration(&r.Answers, time.Minute, forever) }},
}
