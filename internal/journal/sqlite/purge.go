package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Purge implements [journal.Store]. Identifiers grow with time, so ages are read off the primary
// keys, to the millisecond. An event goes only after its body, so a body that is younger than bodies
// is deleted as well when its event is older than events, and both count against the limit.
func (s *Store) Purge(ctx context.Context, bodies, events time.Time, limit int) (journal.Purged, error) {
	var b, e int64
	most := int64(max(limit, 0))
	forEvents := journal.FirstID(events)
	forBodies := max(journal.FirstID(bodies), forEvents)
	err := s.write(ctx, "purging", func(w *writer) (err error) {
		if _, err = w.purgeAttempts.exec(forBodies, most); err != nil {
			return err
		}
		if _, err = w.purgeAnswers.exec(forBodies, most); err != nil {
			return err
		}
		if b, err = w.purgeBodies.exec(forBodies, most); err != nil {
			return err
		}
		if _, err = w.purgeTwins.exec(forEvents, most); err != nil {
			return err
		}
		if _, err = w.purgeSightings.exec(forEvents, most); err != nil {
			return err
		}
		if e, err = w.purgeEvents.exec(forEvents, most); err != nil {
			return err
		}
		_, err = w.purgeNewest.exec(forEvents, most)
		return err
	})
	if err != nil {
		return journal.Purged{}, err
	}
	s.events.added.Add(-e)
	return journal.Purged{Bodies: int(b), Events: int(e)}, nil
}

// Stats implements [journal.Store]. Events are counted by the first call and kept up to date from
// then on; what is written while that count runs may be off by a batch.
func (s *Store) Stats(ctx context.Context) (journal.Stats, error) {
	stats := journal.Stats{Open: map[journal.State]int64{}}
	rows, err := s.readers.QueryContext(ctx, `SELECT state, count(*) FROM `+s.prefix+`deliveries GROUP BY state`)
	if err != nil {
		return journal.Stats{}, fmt.Errorf("journal/sqlite: counting open work: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state journal.State
		var n int64
		if err := rows.Scan(&state, &n); err != nil {
			return journal.Stats{}, fmt.Errorf("journal/sqlite: counting open work: %w", err)
		}
		stats.Open[state] = n
	}
	if err := rows.Err(); err != nil {
		return journal.Stats{}, fmt.Errorf("journal/sqlite: counting open work: %w", err)
	}
	stats.Events, err = s.countEvents(ctx)
	return stats, err
}

func (s *Store) countEvents(ctx context.Context) (int64, error) {
	s.events.Lock()
	defer s.events.Unlock()
	if !s.events.counted {
		before := s.events.added.Load()
		var n int64
		if err := s.readers.QueryRowContext(ctx, `SELECT count(*) FROM `+s.prefix+`events`).Scan(&n); err != nil {
			return 0, fmt.Errorf("journal/sqlite: counting events: %w", err)
		}
		s.events.base, s.events.counted = n-before, true
	}
	return s.events.base + s.events.added.Load(), nil
}
