package journal

import (
	"context"
	"time"
)

// Partitioned is a store that keeps bodies and attempts in partitions by time, each of which goes as a
// whole. [Store.Purge] then deletes only what is in no partition, or has a shorter period than the usual.
type Partitioned interface {
	// Provide makes the partitions that are needed from now until some time ahead, and returns how the
	// tables are divided then, by kind. What no partition is for is stored all the same.
	Provide(ctx context.Context, now time.Time, keep *Retention) (map[Kind]Division, error)

	// Drop drops the oldest partition, of each kind, that is past the usual period as a whole. What is still
	// needed of it, because its event has an open delivery or its source a longer period, is put aside before,
	// in small steps. Nobody waits for that longer than some 50 ms: then it is given up until the next call.
	//
	// It is not one transaction: what was put aside stays so, and the next call goes on. While another
	// process does it nothing is done.
	Drop(ctx context.Context, now time.Time, keep *Retention) (Dropped, error)
}

// Division is how a table is divided.
type Division struct {
	Partitions int
	// From and Until are what the partitions cover, to the millisecond. Zero if there is none.
	From, Until time.Time
}

// Dropped is what came of one call of [Partitioned.Drop].
type Dropped struct {
	// Rows estimates those that went, by kind.
	Rows map[Kind]int64
	// More says that there may be more to do now.
	More bool
}

// dropTimeout bounds one call of Drop, in which there may be many transactions.
const dropTimeout = 10 * time.Minute

// provide has partitions made. Without them everything works, and deleting costs more.
func (j *Journal) provide() (ok bool) {
	var divided map[Kind]Division
	err := j.call(opProvide, j.opt.Timeout, 1, func(ctx context.Context) (err error) {
		divided, err = j.opt.Partitions.Provide(ctx, j.opt.Now(), j.keep.Load())
		return err
	})
	if err == nil {
		j.metrics.divided(divided)
	}
	return err == nil
}

// dropper looks after the partitions, until Close begins.
func (j *Journal) dropper() {
	for wait := purgeRest; j.pauseUntilStop(wait); {
		wait = purgeEvery
		if !j.provide() {
			continue
		}
		var d Dropped
		err := j.call(opDrop, dropTimeout, 1, func(ctx context.Context) (err error) {
			d, err = j.opt.Partitions.Drop(ctx, j.opt.Now(), j.keep.Load())
			return err
		})
		for kind, rows := range d.Rows {
			j.metrics.purged[kind].Add(float64(rows))
		}
		switch {
		case d.More:
			wait = dropRest
		case err == nil:
			j.metrics.cleaned(taskPartitions, j.opt.Now())
		}
	}
}
