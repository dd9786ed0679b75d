package journal

import (
	"strconv"
	"sync"
	"time"
)

// FirstID returns the smallest identifier that [IDs] can give to an event accepted at t: everything
// accepted in an earlier millisecond is below it. Times before 2020 give 0.
func FirstID(t time.Time) int64 {
	return max(0, t.UnixMilli()-idEpoch) << (writerBits + counterBits)
}

const (
	writerBits  = 12
	counterBits = 10
	// MaxWriter is the largest writer number of [NewIDs].
	MaxWriter = 1<<writerBits - 1
)

// idEpoch is 2020-01-01 UTC in Unix milliseconds.
const idEpoch = 1577836800_000

// IDs makes event identifiers that grow with time: milliseconds since 2020-01-01 UTC, a 10-bit counter
// that begins with the fraction of the millisecond, and 12 bits that number the writing process. They
// are unique among generators with different writer numbers, and always grow within one generator, even
// when the clock steps back or more than 1024 are asked for in one millisecond. Among generators on one
// clock an event that is accepted after another was acknowledged has the larger one: a commit takes
// longer than the microsecond in which two processes are told apart by their numbers alone. Safe for
// concurrent use.
type IDs struct {
	writer int64

	mu   sync.Mutex
	last int64 // the last identifier without its writer bits: milliseconds << counterBits | counter
}

// NewIDs returns a generator for the process with this writer number, from 0 to [MaxWriter] (higher
// bits are ignored), whose identifiers are all later than the identifier after. Pass the largest one
// in the store where one process writes at a time, or 0.
func NewIDs(writer int, after int64) *IDs {
	ms := after >> (writerBits + counterBits)
	return &IDs{writer: int64(writer & MaxWriter), last: ms<<counterBits | (1<<counterBits - 1)}
}

// Next returns an identifier for an event accepted at now.
func (g *IDs) Next(now time.Time) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	fraction := int64(now.Nanosecond()) % 1e6 << counterBits / 1e6
	g.last = max(g.last+1, (now.UnixMilli()-idEpoch)<<counterBits|fraction)
	return g.last<<writerBits | g.writer
}

// MuchAhead is how far clocks differ at most that somebody looks after. An identifier that is further beyond the time now was given
// after a clock that was ahead, and does not say when its event was accepted.
const MuchAhead = time.Hour

// Ahead returns how far the last identifier is beyond a time, and 0 if it is not. A clock that is before 2020 is the one that is
// wrong.
func (g *IDs) Ahead(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	is := now.UnixMilli() - idEpoch
	if is < 0 {
		return 0
	}
	return time.Duration(max(0, g.last>>counterBits-is)) * time.Millisecond
}

// BeyondID returns the first identifier that is [MuchAhead] of a time.
func BeyondID(now time.Time) int64 { return boundary(now.Add(MuchAhead)) }

// IDText writes an identifier as text, for JSON: its numbers are not exact where most programs read them.
func IDText(id int64) string { return strconv.FormatInt(id, 10) }

// IDTime returns when the event with an identifier was accepted, to the millisecond.
func IDTime(id int64) time.Time { return time.UnixMilli(id>>(writerBits+counterBits) + idEpoch) }

// AcceptedAt returns when the event with an identifier was accepted: what that says or, if it was given after a clock that had been
// ahead, when the event was received. Zero: that is not known.
func AcceptedAt(id int64, received time.Time) time.Time {
	at := IDTime(id)
	if !received.IsZero() && at.Sub(received) > MuchAhead {
		return received
	}
	return at
}

// IDWriter returns the number of the process that made an identifier.
func IDWriter(id int64) int { return int(id & MaxWriter) }
