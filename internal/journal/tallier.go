package journal

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// Tallier is the side of a [Store] that keeps what processes counted, by the minute and by the hour.
type Tallier interface {
	// AddTallies adds points of minutes, under the number seq of a process, to those minutes and their hours. A batch is
	// added once: what comes under that number again, or under a lower one, changes nothing. So a batch of which
	// nothing is known is sent again, unchanged, before the next one.
	// A minute that is [tally.Active] already, whoever found it so, stays as it is, and so does its hour.
	AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error

	// Tallies returns the points that match, in the order of [tally.Point.Compare].
	Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error)

	// ForgetTallies deletes minutes that are older than [tally.KeepMinutes], and hours that are older than
	// [tally.KeepHours]. While another process purges nothing is deleted, and busy is true.
	ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error)
}
