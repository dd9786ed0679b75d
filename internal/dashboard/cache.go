package dashboard

import (
	"sync"
	"time"
)

// cached is an answer that is the same for everybody for a while: however many look, one question is asked at a time.
type cached[T any] struct {
	mu    sync.Mutex
	until time.Time
	value T
	err   error
}

// get returns the answer, which is asked for again when it is older than age. Those who ask meanwhile wait for it.
func (c *cached[T]) get(now func() time.Time, age time.Duration, ask func() (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now().Before(c.until) {
		c.value, c.err = ask()
		c.until = now().Add(age)
	}
	return c.value, c.err
}
