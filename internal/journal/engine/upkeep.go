package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	purgeStep   = 500                    // events that one purge changes, so that it holds locks only shortly
	purgeRest   = 100 * time.Millisecond // between rounds while there is more
	purgeEvery  = time.Minute
	dropRest    = time.Second      // between partitions that are dropped
	dropTimeout = 10 * time.Minute // of one call, in which there may be many transactions
	statsEvery  = 15 * time.Second
)

// upkeep deletes what is past its retention, and counts what there is.
type upkeep struct {
	*core
	keep  atomic.Pointer[journal.Retention] // see Options.Retention
	ahead bool                              // it was said that identifiers are ahead of the clock; of purge
	stuck atomic.Bool                       // an old partition could not be dropped, so that what is past its retention stays
}

// purge purges in small steps, until Close begins.
func (u *upkeep) purge() {
	var keep *journal.Retention
	var sweeps []*sweep
	for wait := purgeRest; u.pauseUntilStop(wait); {
		u.compareClock()
		if now := u.keep.Load(); now != keep {
			keep, sweeps = now, newSweeps(now)
		}
		more, busy, failed := false, false, false
		for _, s := range sweeps {
			if left := s.rests.Sub(u.opt.Now()); 0 < left && left <= purgeEvery { // a clock may have been set back since
				continue // while others have more to do
			}
			p, err := u.step(s)
			more, busy, failed = more || p.More, busy || p.Busy, failed || err != nil
		}
		if !more && !busy && !failed {
			var err error
			busy, err = u.forget()
			failed = err != nil
		}
		wait = purgeEvery
		switch {
		case failed:
		case more:
			wait = purgeRest
		case !busy && !u.stuck.Load():
			u.metrics.cleaned(taskPurge, u.opt.Now())
		}
	}
}

// compareClock says, once until it is over, that identifiers of events are not of their time.
func (u *upkeep) compareClock() {
	ahead, said := u.opt.IDs.Ahead(u.opt.Now()), u.ahead
	if u.ahead = ahead >= journal.MuchAhead; !u.ahead || said {
		return
	}
	u.opt.Logger.Error("journal: a clock was ahead, and events have gone on being numbered by it since; if this clock is right, start the gateway anew "+
		"(on SQLite that changes nothing); hookonce doctor says what was left behind", "ahead", ahead.Round(time.Second).String())
}

// step does one step of a sweep. One that another process was in the way of is done again.
func (u *upkeep) step(s *sweep) (purged journal.Purged, err error) {
	now := u.opt.Now()
	if since := now.Sub(s.began); since >= again || since < 0 {
		s.After, s.began = 0, now
	}
	s.Before, s.Limit = now.Add(-s.keep), purgeStep
	s.Now = now
	err = u.call(opPurge, u.opt.Timeout, purgeStep, func(ctx context.Context) (err error) {
		purged, err = u.store.Purge(ctx, s.Purge)
		return err
	})
	if err != nil || purged.Busy {
		return purged, err
	}
	s.After = purged.Next
	if !purged.More {
		s.rests = now.Add(purgeEvery / 2)
	}
	u.metrics.purged[s.Kind].add(int64(purged.Deleted))
	return purged, nil
}

// forget deletes what was counted long ago.
func (u *upkeep) forget() (busy bool, err error) {
	err = u.call(opForget, u.opt.Timeout, 1, func(ctx context.Context) (err error) {
		busy, err = u.store.ForgetTallies(ctx, u.opt.Now())
		return err
	})
	return busy, err
}

// ensurePartitions has partitions made. Without them everything works, and deleting costs more.
func (u *upkeep) ensurePartitions() (ok bool) {
	var divided map[journal.Kind]journal.Division
	err := u.call(opEnsure, u.opt.Timeout, 1, func(ctx context.Context) (err error) {
		divided, err = u.opt.Partitions.EnsurePartitions(ctx, u.opt.Now(), u.keep.Load())
		return err
	})
	if err == nil {
		u.metrics.divided(divided)
	}
	return err == nil
}

// dropPartitions looks after the partitions, until Close begins. Old ones go also while none can be made.
func (u *upkeep) dropPartitions() {
	for wait := purgeRest; u.pauseUntilStop(wait); {
		wait = purgeEvery
		made := u.ensurePartitions()
		var d journal.Dropped
		err := u.call(opDrop, dropTimeout, 1, func(ctx context.Context) (err error) {
			d, err = u.opt.Partitions.DropPartitions(ctx, u.opt.Now(), u.keep.Load())
			return err
		})
		for kind, rows := range d.Rows {
			u.metrics.purged[kind].add(rows)
		}
		if err != nil || d.Busy || !d.Part {
			u.stuck.Store(err != nil || d.Busy)
		}
		switch {
		case d.More:
			wait = dropRest
		case made && err == nil && !d.Busy:
			u.metrics.cleaned(taskPartitions, u.opt.Now())
		}
	}
}

// count refreshes the gauges that count rows, until Close begins.
func (u *upkeep) count() {
	for wait := time.Duration(0); u.pauseUntilStop(wait); wait = statsEvery {
		var s journal.Stats
		err := u.call(opStats, u.opt.Timeout, 1, func(ctx context.Context) (err error) {
			s, err = u.store.Stats(ctx)
			return err
		})
		if err == nil {
			u.metrics.count(s, u.opt.Now())
		}
	}
}
