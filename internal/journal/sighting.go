package journal

import (
	"time"
)

// Sight says what a later copy of an event turned out to be.
type Sight string

// The kinds of sightings.
const (
	SeenDuplicate Sight = "duplicate"
	SeenConflict  Sight = "conflict" // it had other content under the same key; the first stands
	SeenRedriven  Sight = "redriven" // it made failed or dead deliveries begin again
)

// Sighting says that copies of an event came.
type Sighting struct {
	EventID     int64
	Kind        Sight
	First, Last time.Time
	Copies      int
}

// Add takes another sighting of the same event and kind into s.
func (s *Sighting) Add(o Sighting) {
	s.Copies += o.Copies
	if o.First.Before(s.First) {
		s.First = o.First
	}
	if o.Last.After(s.Last) {
		s.Last = o.Last
	}
}
