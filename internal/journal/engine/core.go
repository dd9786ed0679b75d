package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// core is what all parts of an engine have in common: the store with its measured calls, the options, and
// how long it lives.
type core struct {
	store   journal.Store
	opt     Options
	metrics *metrics
	ctx     context.Context // of the store's calls; canceled when Close gives up or is through
	stop    chan struct{}   // closed when Close begins

	// celled is set once the store said that it is a cell by now, and this process knows of none.
	celled atomic.Bool
}

// call runs one operation of the store, which is about so many things, under a deadline, measures it, and
// logs when the operation begins to fail and when it works again.
func (c *core) call(o op, timeout time.Duration, batch int, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	m, began := c.metrics.calls[o], time.Now()
	err := do(ctx)
	took := time.Since(began)
	m.seconds.Observe(took.Seconds())
	if o == opAccept {
		c.metrics.worked.commits.Add(1)
		c.metrics.worked.nanoseconds.Add(int64(took))
	}
	m.batch.Observe(float64(batch))
	if err != nil {
		m.failed.Inc()
	}
	m.mu.Lock()
	changed := m.down != (err != nil)
	m.down = err != nil
	m.mu.Unlock()
	switch {
	case changed && err != nil && o == opEnsure: // a role may be meant not to
		c.opt.Logger.Warn("journal: no partitions can be made; what is stored goes to the default ones, and is deleted row by row", "error", err)
	case changed && err != nil:
		c.opt.Logger.Error("journal: the store fails", "op", string(o), "error", err)
	case changed:
		c.opt.Logger.Info("journal: the store works again", "op", string(o))
	}
	return err
}

// closing reports whether Close has begun.
func (c *core) closing() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// pause waits for d and reports true, or false when the engine's context ended first.
func (c *core) pause(d time.Duration) bool { return wait(d, c.ctx.Done(), nil) }

// pauseUntilStop waits for d and reports true, or false when Close began first.
func (c *core) pauseUntilStop(d time.Duration) bool { return wait(d, c.stop, nil) }

// wait waits for d, or until sooner receives, and reports true, or false when end was closed first.
func wait(d time.Duration, end, sooner <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-sooner:
		return true
	case <-end:
		return false
	}
}

// signal has whoever receives from c look. It does not block, and a second signal before the first was
// received is the same one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
