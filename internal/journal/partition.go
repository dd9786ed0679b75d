package journal

import (
	"context"
	"time"
)

// Partitioned is a store that keeps bodies and attempts in partitions by time, each of which goes as a
// whole. [Keeper.Purge] then deletes only what is in no partition, or has a shorter period than the usual.
type Partitioned interface {
	// EnsurePartitions makes the partitions that are needed from now until some time ahead, and returns how the
	// tables are divided then, by kind. What no partition is for is stored all the same.
	EnsurePartitions(ctx context.Context, now time.Time, keep *Retention) (map[Kind]Division, error)

	// DropPartitions drops the oldest partition, of each kind, that is past the usual period as a whole, among those that
	// this process may drop. [Keeper.Purge] deletes what is in the others. What is still
	// needed of it, because its event has an open delivery or its source a longer period, is put aside before,
	// in small steps. Nobody waits for that longer than some 50 ms: then it is given up until the next call.
	//
	// It is not one transaction: what was put aside stays so, and the next call goes on. While another
	// process does it nothing is done.
	DropPartitions(ctx context.Context, now time.Time, keep *Retention) (Dropped, error)
}

// Division is how a table is divided.
type Division struct {
	Partitions int
	// From and Until are what the partitions cover, to the millisecond. Zero if there is none.
	From, Until time.Time
}

// Dropped is what came of one call of [Partitioned.DropPartitions].
type Dropped struct {
	// Rows estimates those that went, by kind.
	Rows map[Kind]int64
	// More says that there may be more to do now.
	More bool
	// Part says that a partition was looked through in part, so that nothing new is known of whether it can be dropped.
	Part bool
	// Busy says that others were in the way of a partition whose time has come.
	Busy bool
}
