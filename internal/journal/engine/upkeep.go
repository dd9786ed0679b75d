package engine

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	purgeStep  = 500                    // events that one purge changes, so that it holds locks only shortly
	purgeRest  = 100 * time.Millisecond // between rounds while there is more
	purgeEvery = time.Minute
	dropRest   = time.Second // between partitions that are dropped
	statsEvery = 15 * time.Second
)

// janitor purges what is past its retention, in small steps, until Close begins.
func (j *Engine) janitor() {
	var keep *journal.Retention
	var sweeps []*sweep
	for wait := purgeRest; j.pauseUntilStop(wait); {
		if now := j.keep.Load(); now != keep {
			keep, sweeps = now, newSweeps(now)
		}
		more, failed := false, false
		for _, s := range sweeps {
			if j.opt.Now().Before(s.rests) {
				continue // while others have more to do
			}
			m, err := j.step(s)
			more, failed = more || m, failed || err != nil
		}
		wait = purgeEvery
		switch {
		case more && !failed:
			wait = purgeRest
		case !failed:
			j.metrics.cleaned(taskPurge, j.opt.Now())
		}
	}
}

// counter refreshes the gauges that count rows, until Close begins.
func (j *Engine) counter() {
	for wait := time.Duration(0); j.pauseUntilStop(wait); wait = statsEvery {
		var s journal.Stats
		err := j.call(opStats, j.opt.Timeout, 1, func(ctx context.Context) (err error) {
			s, err = j.store.Stats(ctx)
			return err
		})
		if err == nil {
			j.metrics.count(s)
		}
	}
}
