package ingest

import (
	"cmp"
	"sync/atomic"
)

// budget bounds the memory of the bodies that are being read or handled at the same moment. What is
// unverified can be sent by anybody, so without it the number of connections would be the only bound.
type budget struct {
	max  int64 // bytes
	used atomic.Int64
}

// newBudget returns a budget of limit bytes, or more where one body of the largest source would not
// fit: it could never be accepted.
func newBudget(limit int64, sources []Source) *budget {
	b := &budget{max: limit}
	for _, s := range sources {
		b.max = max(b.max, 2*(cmp.Or(s.MaxBody, DefaultMaxBody)+1)) // see grow
	}
	return b
}

// take sets n bytes aside, or fails at once. Nobody waits for memory: a sender comes again.
func (b *budget) take(n int) error {
	if b.used.Add(int64(n)) > b.max {
		b.give(n)
		return errCrowded
	}
	return nil
}

// give returns what was taken.
func (b *budget) give(n int) {
	if n > 0 {
		b.used.Add(-int64(n))
	}
}
