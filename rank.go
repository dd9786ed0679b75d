package hookonce

import (
	"fmt"
	"time"
)

// Rank is the place of one state of a resource among its other states. The zero value is no rank: nothing
// says which of two states is newer. Make one with [Version] or [Timestamp].
type Rank struct {
	// Kind says what N counts, and so what it means that two are equal. Empty: there is no rank.
	Kind RankKind
	// N is the version number, or the time in microseconds since 1970.
	N int64
}

// RankKind says what a [Rank] is.
type RankKind string

// The kinds of ranks.
const (
	// RankVersion is a number that is higher for each state of the resource. Equal numbers are one state.
	RankVersion RankKind = "version"
	// RankTime is a time. Equal times say nothing: two states can follow each other within one tick of the
	// clock, which is a second for some providers.
	RankTime RankKind = "time"
)

// Version is the rank of a state whose version has that number.
func Version(n int64) Rank { return Rank{RankVersion, n} }

// Timestamp is the rank of a state of that time, to the microsecond. The zero time is no rank.
func Timestamp(t time.Time) Rank {
	if t.IsZero() {
		return Rank{}
	}
	return Rank{RankTime, t.UnixMicro()}
}

// IsZero reports whether there is no rank.
func (r Rank) IsZero() bool { return r == Rank{} }

// String returns kind and number, for logs and errors.
func (r Rank) String() string {
	if r.IsZero() {
		return "no rank"
	}
	return fmt.Sprintf("%s %d", r.Kind, r.N)
}

// Supersedes reports whether a state of rank r is to be applied after one of rank old: its version is
// higher, or its time is not lower. Ranks of two kinds cannot be compared, and then it is: to apply an
// older state is repaired by the next event, to leave a newer one out by none. It is the rule that every
// store applies; without a rank no store is asked.
func (r Rank) Supersedes(old Rank) bool {
	return r.Kind != old.Kind || r.N > old.N || r.N == old.N && r.Kind == RankTime
}
