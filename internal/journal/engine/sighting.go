package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

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
	seen map[sightingKey]*journal.DuplicateReceipt
}

type sightingKey struct {
	event int64
	kind  journal.ReceiptKind
}

func newSightings() *sightings {
	return &sightings{
		seen:    map[sightingKey]*journal.DuplicateReceipt{},
		dropped: counter("sightings_dropped_total", "Copies that were recognised and answered, but too many to record."),
	}
}

// note remembers the copies among the entries of a request that was answered.
func (j *Engine) note(entries []*journal.Event, results []journal.Result) {
	if j.opt.Records != nil {
		j.sightings.note(entries, results)
	}
}

// note takes the copies among the results of one request.
func (s *sightings) note(entries []*journal.Event, results []journal.Result) {
	for i := range results {
		if kind := results[i].Receipt(); kind != "" {
			at := entries[i].ReceivedAt
			s.add(journal.DuplicateReceipt{EventID: results[i].ID, Kind: kind, First: at, Last: at, Copies: 1})
		}
	}
}

func (s *sightings) add(seen journal.DuplicateReceipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sightingKey{seen.EventID, seen.Kind}
	switch before := s.seen[key]; {
	case before != nil:
		before.Add(seen)
	case len(s.seen) < maxSeen:
		s.seen[key] = &seen
	default:
		s.dropped.Add(float64(seen.Copies))
	}
}

// take removes and returns at most one batch.
func (s *sightings) take() []journal.DuplicateReceipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []journal.DuplicateReceipt
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

func compareSightings(a, b journal.DuplicateReceipt) int {
	return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Kind, b.Kind))
}

// recorder writes sightings to the store until Close begins.
func (j *Engine) recorder() {
	for j.pauseUntilStop(recordEvery) {
		j.recordSightings()
	}
}

// recordRest writes what is left when Close is nearly through.
func (j *Engine) recordRest() {
	for j.opt.Records != nil && j.recordSightings() {
	}
}

// recordSightings records one batch, and reports whether there may be more. What cannot be recorded
// waits for the next time.
func (j *Engine) recordSightings() (more bool) {
	batch := j.sightings.take()
	if len(batch) == 0 {
		return false
	}
	err := j.call(opSighted, j.opt.Timeout, len(batch), func(ctx context.Context) error {
		return j.opt.Records.RecordDuplicates(ctx, batch)
	})
	if err == nil {
		return len(batch) == seenBatch
	}
	for _, seen := range batch {
		j.sightings.add(seen)
	}
	return false
}
