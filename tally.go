package hookonce

import (
	"context"
	"time"
)

// Tally is how often something came of events or requests: in a minute, or in all that a [TallyQuery] covers.
type Tally struct {
	// Minute is the beginning of the minute, in UTC. It is zero in answers, which add up minutes.
	Minute time.Time
	// Source is that of the handler, and Status what came of it: one of [Observation].
	Source, Status string
	N              int64
}

// TallyQuery says which tallies [Tallier.Tallies] adds up: those from From on, and before Until.
type TallyQuery struct {
	From, Until time.Time
	// Hours adds up whole hours, for long times: what begins in them counts. The default is minutes.
	Hours bool
}

// Tallier keeps what processes counted, by the minute for two days and by the hour for a hundred days. It is an optional
// ability of a [Store]: package tallies counts and adds, and package dashboard shows. The stores in SQL databases are Talliers.
// They use connections of their own, never a handler's transaction.
type Tallier interface {
	// AddTallies adds tallies under the number seq of a process, to their minutes and hours. Numbers go up from 1. What was
	// added under that number, or a higher one, is not added again, so a batch of which nothing is known, because of an
	// error, is sent again as it was before the next one. The process is a name that no other has, and no earlier run of the
	// same program had. Errors also: [ErrInvalidRef] for a source that no handler can have.
	AddTallies(ctx context.Context, process string, seq int64, tallies []Tally) error

	// Tallies returns the sums by source and status, in order.
	Tallies(ctx context.Context, q TallyQuery) ([]Tally, error)

	// ForgetTallies deletes some of what is older than it is kept for, by the store's clock, and reports whether there may
	// be more: call it again then. Several processes may do so at once.
	ForgetTallies(ctx context.Context) (more bool, err error)
}
