package journal

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// add takes another sighting of the same event and kind into s.
func (s *Sighting) add(o Sighting) {
	s.Copies += o.Copies
	if o.First.Before(s.First) {
		s.First = o.First
	}
	if o.Last.After(s.Last) {
		s.Last = o.Last
	}
}

const (
	maxSeen     = 4096        // what waits to be recorded, in pairs of event and kind
	seenBatch   = 500         // what is recorded in one transaction
	recordEvery = time.Second // so that a storm of copies costs the store one small transaction in this time
)

// sightings are the copies that wait to be recorded. Copies of one event and kind that come meanwhile are
// one sighting; beyond the bound they are counted and forgotten, because a copy must never wait for the
// store or fill the memory.
type sightings struct {
	dropped prometheus.Counter

	mu   sync.Mutex
	seen map[sightingKey]*Sighting
}

type sightingKey struct {
	event int64
	kind  Sight
}

func newSightings() *sightings {
	return &sightings{
		seen:    map[sightingKey]*Sighting{},
		dropped: counter("sightings_dropped_total", "Copies that were recognised and answered, but too many to record."),
	}
}

// note remembers the copies among the entries of a request that was answered.
func (j *Journal) note(entries []*Entry, results []Result) {
	if j.opt.Records != nil {
		j.sightings.note(entries, results)
	}
}

// note takes the copies among the results of one request.
func (s *sightings) note(entries []*Entry, results []Result) {
	for i := range results {
		if kind := results[i].sight(); kind != "" {
			at := entries[i].ReceivedAt
			s.add(Sighting{EventID: results[i].ID, Kind: kind, First: at, Last: at, Copies: 1})
		}
	}
}

// sight returns what kind of copy a result is about, empty if the event is new.
func (r *Result) sight() Sight {
	switch {
	case r.Err != nil:
		return ""
	case r.Redriven:
		return SeenRedriven
	case r.Status == Conflict:
		return SeenConflict
	case r.Status == Duplicate:
		return SeenDuplicate
	}
	return ""
}

func (s *sightings) add(seen Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sightingKey{seen.EventID, seen.Kind}
	switch before := s.seen[key]; {
	case before != nil:
		before.add(seen)
	case len(s.seen) < maxSeen:
		s.seen[key] = &seen
	default:
		s.dropped.Add(float64(seen.Copies))
	}
}

// take removes and returns at most one batch.
func (s *sightings) take() []Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []Sighting
	for key, seen := range s.seen {
		if len(batch) == seenBatch {
			break
		}
		batch = append(batch, *seen)
		delete(s.seen, key)
	}
	slices.SortFunc(batch, compareSightings)
	return batch
}

func compareSightings(a, b Sighting) int {
	return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Kind, b.Kind))
}

// recorder writes sightings to the store until Close begins.
func (j *Journal) recorder() {
	for j.pauseUntilStop(recordEvery) {
		j.recordSightings()
	}
}

// recordRest writes what is left when Close is nearly through.
func (j *Journal) recordRest() {
	for j.opt.Records != nil && j.recordSightings() {
	}
}

// recordSightings records one batch, and reports whether there may be more. What cannot be recorded
// waits for the next time.
func (j *Journal) recordSightings() (more bool) {
	batch := j.sightings.take()
	if len(batch) == 0 {
		return false
	}
	err := j.call(opSighted, j.opt.Timeout, len(batch), func(ctx context.Context) error {
		return j.opt.Records.Sighted(ctx, batch)
	})
	if err == nil {
		return len(batch) == seenBatch
	}
	for _, seen := range batch {
		j.sightings.add(seen)
	}
	return false
}
