package journal

import "time"

// Destination says how the deliveries to one destination are handed out.
type Destination struct {
	// Ordered makes the deliveries of one resource follow each other, oldest first: none begins before
	// the one before it is done or dead. Events without a resource are not ordered.
	Ordered bool
	// Stale compares the rank of each event with the newest of its resource that was delivered, and says
	// so in [Work.Stale].
	Stale bool
}

// Orders reports whether deliveries of this resource wait for each other.
func (d Destination) Orders(resource string) bool { return d.Ordered && resource != "" }

// Rest says how little is brought for a destination that is ill, or recovers. The zero value ends it.
type Rest struct {
	// Until is when something is taken from the store again. Before that nothing is in flight but, unless Strict,
	// a few of those events that are accepted meanwhile and are of no source and type in Avoid.
	Until  time.Time
	Strict bool
	// Most bounds how many deliveries are in flight at once, but for those few. Zero: the capacity of the
	// destination does.
	Most int
	// Pick has the store look for the deliveries that are most likely to be taken by the destination, see
	// [Want]; else those come that have been due for longest.
	Pick bool
	// Avoid are events that failed.
	Avoid []Class
}

// Avoids reports whether an event of this source and type failed.
func (r *Rest) Avoids(source, kind string) bool { return avoids(r.Avoid, source, kind) }
