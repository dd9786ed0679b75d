package journaltest

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
)

// NoDoneKeys has an engine remember no finished keys, where [Options] completes its options.
const NoDoneKeys = -1

// Options completes those of an engine: what is zero gets the value that a gateway gives it, or something harmless.
func Options(o engine.Options) engine.Options {
	o.MaxBatch = cmp.Or(o.MaxBatch, 256)
	o.QueueEntries = cmp.Or(o.QueueEntries, 8192)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.MaxHeld = cmp.Or(o.MaxHeld, 4096)
	o.HeldBytes = cmp.Or(o.HeldBytes, 64<<20)
	o.Lease = cmp.Or(o.Lease, 9*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.DoneKeys = max(0, cmp.Or(o.DoneKeys, 16384))
	if o.Retention == nil {
		r := Retention()
		o.Retention = &r
	}
	if o.IDs == nil {
		o.IDs = journal.NewIDs(rand.IntN(journal.MaxWriter+1), 0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Retention keeps ids for 90 days, audits for 400, and all else for 7.
func Retention() journal.Retention {
	const day = 24 * time.Hour
	return journal.Retention{Audits: 400 * day, Period: journal.Period{IDs: 90 * day, Bodies: 7 * day, Attempts: 7 * day, Answers: 7 * day}}
}
