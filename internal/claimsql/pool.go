package claimsql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// PoolWatch counts handlers that hold a connection of a pool, so that a pool that waits for itself is named as the
// cause. The zero PoolWatch is ready for use, and safe for concurrent use.
type PoolWatch struct {
	mu   sync.Mutex
	held int
	full time.Time // when the pool was full for the last time
	// waits is how often somebody had waited for the only connection when a handler got it.
	waits int64
}

// recent is how long it counts that the pool was full: handlers that wait for each other give up one after the
// other.
const recent = time.Second

// Enter counts a handler, of a pool with so many connections at most; 0: without a limit. Waits tells how often
// somebody has waited for a connection of the pool.
func (c *PoolWatch) Enter(size int, waits func() int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
	c.look(size)
	if size == 1 {
		c.waits = waits()
	}
}

// Leave ends Enter.
func (c *PoolWatch) Leave(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(size)
	c.held--
}

func (c *PoolWatch) look(size int) {
	if size > 0 && c.held >= size {
		c.full = time.Now()
	}
}

// Explain adds to err, with which something failed under ctx, that handlers held the whole pool, if that was so and
// a time that was over is what err is about. Each handler holds the whole of a pool of one connection: there somebody
// must have waited meanwhile.
func (c *PoolWatch) Explain(ctx context.Context, size int, waits func() int64, err error) error {
	if err == nil || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(size)
	if time.Since(c.full) > recent || size == 1 && waits() == c.waits {
		return err
	}
	return fmt.Errorf("%w (all %d connections of the pool were held by handlers: a handler that takes another connection from the "+
		"same pool waits for itself; use the transaction that it was given, or make the pool larger than the number of handlers at once)", err, size)
}
