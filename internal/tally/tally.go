// Package tally counts what happens to events by the minute, so that pages and alerts can say what was usual and
// what is not, without counting rows of large tables.
//
// Whoever counts looks a [Counter] up once, and adds to it. A [Registry] has all counters of a process and
// hands what was added to a store now and then. What there is to count is a closed set: see [Words].
package tally

import (
	"cmp"
	"time"
)

// Point is how often something happened in a minute, or in an hour.
type Point struct {
	// Minute is the beginning of the minute or hour, in UTC.
	Minute time.Time
	// Source and Destination are what was counted of. Empty: see [Word.Of].
	Source, Destination string
	What                What
	N                   int64
}

// Compare orders points by time, source, destination and word.
func (p Point) Compare(o Point) int {
	return cmp.Or(p.Minute.Compare(o.Minute), cmp.Compare(p.Source, o.Source),
		cmp.Compare(p.Destination, o.Destination), cmp.Compare(p.What, o.What))
}

// How long a store keeps counts.
const (
	KeepMinutes = 48 * time.Hour
	KeepHours   = 100 * 24 * time.Hour
)

// Query chooses points. Every field narrows it, except that the zero value of Source, Destination and Whats matches
// all of them.
type Query struct {
	// From and Until bound the beginnings of the minutes or hours: from From on, and before Until.
	From, Until time.Time
	// Step is [time.Minute] or [time.Hour].
	Step                time.Duration
	Source, Destination string
	Whats               []What
	// Total adds up sources and destinations: points then name none.
	Total bool
	// Limit is how many points there may be, the earliest ones. Zero: any number.
	Limit int
}
