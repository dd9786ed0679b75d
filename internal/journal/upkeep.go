package journal

import (
	"context"
	"time"
)

const (
	purgeStep  = 500                    // rows that one purge deletes, so that it holds locks only shortly
	purgeRest  = 100 * time.Millisecond // between steps while there is more
	purgeEvery = time.Minute
	statsEvery = 15 * time.Second
)

// janitor purges what is past its retention, in small steps, until Close begins.
func (j *Journal) janitor() {
	if *j.opt.Retention == (Retention{}) {
		return
	}
	for wait := purgeRest; j.pauseUntilStop(wait); {
		if wait = purgeEvery; j.purge() {
			wait = purgeRest
		}
	}
}

// purge does one step and reports whether there may be more.
func (j *Journal) purge() (more bool) {
	var purged Purged
	err := j.call(opPurge, j.opt.Timeout, purgeStep, func(ctx context.Context) (err error) {
		bodies, ids := j.cutoff(j.opt.Retention.Bodies), j.cutoff(j.opt.Retention.IDs)
		purged, err = j.store.Purge(ctx, bodies, ids, purgeStep)
		return err
	})
	return err == nil && (purged.Bodies >= purgeStep || purged.Events >= purgeStep)
}

// cutoff returns the time before which something kept for d is dropped; the zero time when it is kept
// for ever.
func (j *Journal) cutoff(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return j.opt.Now().Add(-d)
}

// counter refreshes the gauges that count rows, until Close begins.
func (j *Journal) counter() {
	for wait := time.Duration(0); j.pauseUntilStop(wait); wait = statsEvery {
		var s Stats
		err := j.call(opStats, j.opt.Timeout, 1, func(ctx context.Context) (err error) {
			s, err = j.store.Stats(ctx)
			return err
		})
		if err == nil {
			j.metrics.count(s)
		}
	}
}
