package journal

import (
	"time"
)

// Division is how a table is divided.
type Division struct {
	Partitions int
	// From and Until are what the partitions cover, to the millisecond. Zero if there is none.
	From, Until time.Time
}

// Dropped is what came of one call of [Partitioned.DropPartitions].
type Dropped struct {
	// Rows estimates those that went, by kind.
	Rows map[Kind]int64
	// More says that there may be more to do now.
	More bool
}
