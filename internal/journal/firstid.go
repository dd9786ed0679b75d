package journal

import "time"

// FirstID returns the smallest identifier that [IDs] can give to an event accepted at t: everything
// accepted in an earlier millisecond is below it. Times before 2020 give 0.
func FirstID(t time.Time) int64 {
	return max(0, t.UnixMilli()-idEpoch) << (writerBits + counterBits)
}
