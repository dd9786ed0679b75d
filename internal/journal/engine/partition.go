package engine

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// dropTimeout bounds one call of Drop, in which there may be many transactions.
const dropTimeout = 10 * time.Minute

// provide has partitions made. Without them everything works, and deleting costs more.
func (j *Engine) provide() (ok bool) {
	var divided map[journal.Kind]journal.Division
	err := j.call(opProvide, j.opt.Timeout, 1, func(ctx context.Context) (err error) {
		divided, err = j.opt.Partitions.EnsurePartitions(ctx, j.opt.Now(), j.keep.Load())
		return err
	})
	if err == nil {
		j.metrics.divided(divided)
	}
	return err == nil
}

// dropper looks after the partitions, until Close begins.
func (j *Engine) dropper() {
	for wait := purgeRest; j.pauseUntilStop(wait); {
		wait = purgeEvery
		if !j.provide() {
			continue
		}
		var d journal.Dropped
		err := j.call(opDrop, dropTimeout, 1, func(ctx context.Context) (err error) {
			d, err = j.opt.Partitions.DropPartitions(ctx, j.opt.Now(), j.keep.Load())
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
