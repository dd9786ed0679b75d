package pg

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// release takes the key from the events whose delivery has begun, or is done, where an entry that
// coalesces wants it. Whoever stores the next event under the key does so after this statement, so an
// entry that comes too late for the key is a copy of one that has not begun before the entry arrived.
func (a *acceptance) release(ctx context.Context, copies []int) error {
	var n, at []int32
	var source, key, destination []string
	for _, i := range copies {
		e := a.batch[i]
		if !journal.Coalesces(e.Key) {
			continue
		}
		n, source, key = append(n, int32(i)), append(source, e.Source), append(key, e.Key)
		for _, d := range e.Destinations {
			at, destination = append(at, int32(i)), append(destination, d)
		}
	}
	if len(n) == 0 {
		return nil
	}
	_, err := a.pool.Exec(ctx, a.sql.release, n, source, key, at, destination)
	return err
}
