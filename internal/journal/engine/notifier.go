package engine

import (
	"context"
	"time"
)

const (
	notifyRest    = 100 * time.Millisecond // between two notifications: what happens meanwhile is told by one
	notifyTimeout = time.Second            // after which polling is no slower
	notifyAgain   = time.Second            // after a notification that failed
)

// notifier tells the other processes on the store that there is work, and hears of theirs, by [Options.Notifier].
type notifier struct {
	*core
	done     *doneCache
	schedule *schedule
	told     chan struct{} // others are to be told
	heard    chan struct{} // others have told: pauses may have changed
}

func newNotifier(c *core, done *doneCache, s *schedule) *notifier {
	return &notifier{core: c, done: done, schedule: s, told: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
}

// tell has the other processes look for work, and at who is paused. It does not block.
func (n *notifier) tell() { signal(n.told) }

// listen follows what others tell until the engine's context ends.
func (n *notifier) listen() {
	n.opt.Notifier.Listen(n.ctx, func() {
		n.done.forget() // somebody may have replayed it
		n.schedule.note(n.opt.Now())
		signal(n.heard)
	})
	n.done.end()
}

// run notifies for those who ask, until the engine's context ends. What failed it does again until it succeeds: work is
// found by polling, but what others remember as done of what was replayed they would remember for good.
func (n *notifier) run() {
	for {
		rest := notifyRest
		select {
		case <-n.told:
			if !n.notify() {
				n.tell()
				rest = notifyAgain
			}
		case <-n.ctx.Done():
			return
		}
		if !n.pause(rest) {
			return
		}
	}
}

// notify notifies once, and reports whether that went well. It does nothing without a notifier.
func (n *notifier) notify() bool {
	if n.opt.Notifier == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(n.ctx, notifyTimeout)
	defer cancel()
	err := n.opt.Notifier.Notify(ctx)
	if err != nil {
		n.opt.Logger.Debug("journal: other processes were not told of work, and find it when they poll", "error", err)
	}
	return err == nil
}
