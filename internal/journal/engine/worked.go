package engine

import (
	"sync/atomic"
	"time"
)

// Worked is what an [Engine] did with its store since it began.
type Worked struct {
	// Commits are the transactions that made events durable, or failed to, and CommitTime is how long all of them took.
	Commits    int64
	CommitTime time.Duration
	// Unrecorded events went past the store and are on no record yet.
	Unrecorded int64
	// Cleaned is when nothing more was left to delete; zero if that was not yet so.
	Cleaned time.Time
	// Partitioned is the end of the last partition that all divided tables have; zero if none is divided.
	Partitioned time.Time
}

// worked keeps it.
type worked struct {
	commits, nanoseconds atomic.Int64
	cleaned, partitioned atomic.Int64 // Unix seconds; 0: never
}

// Worked returns what was done so far. It asks nobody, and is safe for concurrent use.
func (e *Engine) Worked() Worked {
	w := &e.metrics.worked
	return Worked{
		Commits: w.commits.Load(), CommitTime: time.Duration(w.nanoseconds.Load()), Unrecorded: int64(e.bypass.Unrecorded()),
		Cleaned: moment(w.cleaned.Load()), Partitioned: moment(w.partitioned.Load()),
	}
}

func moment(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
