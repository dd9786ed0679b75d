package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hookonce/hookonce"
)

// suspected is true while a suspect runs in this process, or is being taken. It belongs to the process and not
// to a relay, because that is what dies: of two suspects at once nobody could tell whose death it was.
var suspected atomic.Bool

// suspects returns how many suspects the relay may take now, and what makes room for others afterwards, which
// may be called more than once.
func (r *run) suspects() (n int, release func()) {
	if !suspected.CompareAndSwap(false, true) {
		return 0, func() {}
	}
	return 1, sync.OnceFunc(func() { suspected.Store(false) })
}

// overdue calls free when the attempt with that context goes on for too long after the end of it. A handler that
// heeds no context would otherwise keep every other suspect waiting until it returns, which may be never. The
// function that it returns ends the watch.
func (r *run) overdue(ctx context.Context, free func()) (returned func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		if !within(over, min(r.lease, returnTime)) {
			free()
		}
	}()
	return func() { close(over) }
}

// suspicious reports whether a process died, or a lease was lost, at the last attempt at e.
func suspicious(e hookonce.QueuedEffect) bool { return e.Deaths > 0 }

// deadly says why an effect is given up that never got as far as an outcome.
func deadly(e hookonce.QueuedEffect) error {
	return hookonce.Permanent(fmt.Errorf("relay: given up without another attempt: %d in a row left no outcome, all but the first as the only suspect of their process; "+
		"the handler ends the process (exit, fatal error, out of memory) or does not heed its context, or the store was away for longer than a lease; "+
		"look at what the processes said last, mend it, and revive effect %d", e.Deaths, e.ID))
}
