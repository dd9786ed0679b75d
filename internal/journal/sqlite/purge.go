package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Purge implements [journal.Store]. Identifiers grow with time, so ages are read off the primary keys, to the
// millisecond; see [journal.Purge.Ahead] for those of a clock that was wrong.
func (s *Store) Purge(ctx context.Context, p journal.Purge) (purged journal.Purged, err error) {
	err = s.write(ctx, "purging "+string(p.Kind), func(w *writer) (err error) {
		switch p.Kind {
		case journal.KindRanks:
			after, end := p.Range()
			purged, err = s.purgeOldest(w, &p, purgeRanksSQL, after, end, p.Ahead, p.Before.UnixMicro())
		case journal.KindAudits:
			purged, err = s.purgeOldest(w, &p, purgeAuditsSQL, p.Before.UnixMicro())
		default:
			purged, err = s.purge(w, &p)
		}
		return err
	})
	if err != nil {
		return journal.Purged{}, err
	}
	if p.Kind == journal.KindIDs {
		s.events.added.Add(-int64(purged.Deleted))
	}
	return purged, nil
}

// purge does a step that looks at events.
func (s *Store) purge(w *writer, p *journal.Purge) (purged journal.Purged, err error) {
	own := column{string(p.Kind), "event_id"}
	all := []column{own}
	if p.Kind == journal.KindIDs {
		own = column{"events", "id"}
		all = []column{{"bodies", "event_id"}, {"attempts", "event_id"}, {"answers", "event_id"}, {"twins", "event_id"},
			{"sightings", "event_id"}, own}
	}
	var found []journal.Found
	after, end := p.Range()
	err = w.with(s.in(fmt.Sprintf(lookSQL, own.table, own.name)), func(look *stmt) error {
		return look.query(func(row []driver.Value) error {
			f := journal.Found{ID: row[0].(int64), Source: row[1].(string), Open: row[2].(int64) != 0}
			if at, there := row[3].(int64); there {
				f.Received = time.UnixMicro(at)
			}
			found = append(found, f)
			return nil
		}, after, end, int64(p.Look()))
	})
	if err != nil {
		return journal.Purged{}, err
	}
	old, purged := p.Choose(p.Aged(found))
	for _, c := range all { // of which own is the last
		if purged.Deleted, err = w.deleteAll(s.in(fmt.Sprintf(`DELETE FROM {{.}}%s WHERE %s = ?`, c.table, c.name)), old); err != nil {
			return journal.Purged{}, err
		}
	}
	return purged, nil
}

// column is where a table has the identifier of the event that its rows belong to.
type column struct{ table, name string }

// lookSQL finds the events of which a table has rows, with what decides about them. The rows say what there
// is: their events may be gone.
const lookSQL = `SELECT f.id, coalesce((SELECT e.source FROM {{.}}events e WHERE e.id = f.id), ''),
		EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = f.id),
		(SELECT e.received_at FROM {{.}}events e WHERE e.id = f.id)
	FROM (SELECT DISTINCT %[2]s AS id FROM {{.}}%[1]s WHERE %[2]s > ?1 AND %[2]s < ?2 ORDER BY %[2]s LIMIT ?3) f ORDER BY f.id`

// purgeRanksSQL forgets the ranks of resources that nothing was delivered of for long. ?4: whether the event has to say how old it
// is, in which case one that is gone is.
const purgeRanksSQL = `DELETE FROM {{.}}newest WHERE (destination, resource) IN
	(SELECT destination, resource FROM {{.}}newest n WHERE event_id > ?2 AND event_id < ?3 AND NOT (?4 AND EXISTS
		(SELECT 1 FROM {{.}}events e WHERE e.id = n.event_id AND e.received_at >= ?5)) LIMIT ?1)`

// purgeAuditsSQL forgets what operators did. Numbers grow with time.
const purgeAuditsSQL = `DELETE FROM {{.}}audits WHERE id IN (SELECT id FROM {{.}}audits WHERE at < ?2 ORDER BY id LIMIT ?1)`

// deleteAll runs a statement that deletes what belongs to one event for each of them.
func (w *writer) deleteAll(text string, ids []int64) (n int, err error) {
	err = w.with(text, func(remove *stmt) error {
		for _, id := range ids {
			gone, err := remove.exec(id)
			if err != nil {
				return err
			}
			n += int(gone)
		}
		return nil
	})
	return n, err
}

// purgeOldest deletes what belongs to no source, oldest first. The first argument of the statement is its limit.
func (s *Store) purgeOldest(w *writer, p *journal.Purge, text string, args ...any) (journal.Purged, error) {
	n, err := w.once(s.in(text), append([]any{int64(max(p.Limit, 0))}, args...)...)
	return journal.Purged{Deleted: int(n), Next: p.After, More: n > 0 && int(n) == p.Limit}, err
}

// Stats implements [journal.Store]. Events are counted by the first call and kept up to date from
// then on; what is written while that count runs may be off by a batch.
func (s *Store) Stats(ctx context.Context) (journal.Stats, error) {
	backlog, err := s.Open(ctx)
	if err != nil {
		return journal.Stats{}, err
	}
	stats := journal.Stats{Open: journal.ByState(backlog), Backlog: backlog}
	if err := s.readers.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&stats.Bytes); err != nil {
		return journal.Stats{}, failed("reading the size of the file", err)
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
			return 0, failed("counting events", err)
		}
		s.events.base, s.events.counted = n-before, true
	}
	return s.events.base + s.events.added.Load(), nil
}
