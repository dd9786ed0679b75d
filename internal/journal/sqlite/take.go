package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Take implements [journal.Store].
func (s *Store) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	if want.Deliveries <= 0 {
		return nil, ctx.Err()
	}
	var t *taking
	err := s.write(ctx, "taking work", func(w *writer) error {
		t = &taking{writer: w, now: now.UnixMicro(), lease: lease, left: want.Deliveries, bytes: want.Bytes}
		wants, err := t.wants(want)
		for _, d := range wants {
			if err == nil {
				err = t.destination(d)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.due, func(a, b dueWork) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.work.EventID, b.work.EventID))
	})
	work := make([]*journal.Work, len(t.due))
	for i, d := range t.due {
		work[i] = d.work
	}
	return work, nil
}

// taking is one call of Take.
type taking struct {
	*writer
	now   int64
	lease time.Time
	left  int   // deliveries that may still be taken
	bytes int64 // the bound for all of them, 0: none
	taken int64 // bytes
	due   []dueWork
}

// dueWork is taken work, and when it was due.
type dueWork struct {
	work *journal.Work
	at   int64
}

// wants returns the part of each destination.
func (t *taking) wants(want journal.Wanted) (wants []journal.Want, err error) {
	if want.Destinations != nil {
		return want.Destinations, nil
	}
	err = t.targets.query(func(row []driver.Value) error {
		wants = append(wants, journal.Want{Destination: row[0].(string), Deliveries: want.Deliveries, Bytes: want.Bytes})
		return nil
	})
	return wants, err
}

// part is what is taken for one destination.
type part struct {
	journal.Want
	count int
	bytes int64
}

// destination takes for one of them: from the ordering groups at most half, so that what is in no ordering group comes to its
// turn as well.
func (t *taking) destination(want journal.Want) error {
	p := &part{Want: want}
	if want.Pick {
		return t.pick(p)
	}
	if err := t.groupsOf(p, (min(want.Deliveries, t.left)+1)/2); err != nil {
		return err
	}
	type free struct{ event, at int64 }
	var due []free
	err := t.writer.due.query(func(row []driver.Value) error {
		due = append(due, free{row[0].(int64), row[1].(int64)})
		return nil
	}, want.Destination, t.now, int64(min(want.Deliveries-p.count, t.left)))
	for _, d := range due {
		if err == nil && t.room(p) {
			_, err = t.take(p, d.event, d.at)
		}
	}
	return err
}

// room reports whether more fits into the part, and into all.
func (t *taking) room(p *part) bool {
	return t.left > 0 && p.count < p.Deliveries && (p.Bytes == 0 || p.bytes < p.Bytes) && (t.bytes == 0 || t.taken < t.bytes)
}

// take leases a delivery, or buries it where the body is gone, and reports which.
func (t *taking) take(p *part, event, at int64) (leased bool, err error) {
	w := &journal.Work{Held: journal.Held{EventID: event, Destination: p.Destination}, Lease: t.lease}
	if err := t.body.query(func(row []driver.Value) error {
		w.Header, w.Body = notNull(row[0].([]byte)), notNull(row[1].([]byte))
		return nil
	}, event); err != nil {
		return false, err
	}
	if w.Header == nil {
		_, err := t.bury.exec(journal.BodyGone, string(journal.ErrorBodyGone), event, p.Destination)
		return false, err
	}
	if _, err := t.writer.lease.exec(event, p.Destination, t.lease.UnixMicro()); err != nil {
		return false, err
	}
	size := int64(len(w.Header) + len(w.Body))
	t.left--
	t.taken += size
	p.count++
	p.bytes += size
	t.due = append(t.due, dueWork{w, at})
	return true, t.describe(w, p.Stale)
}

// describe fills in what is known about a leased delivery.
func (t *taking) describe(w *journal.Work, compare bool) error {
	return t.work.query(func(row []driver.Value) error {
		w.Token, w.Tries, w.Forced = row[0].(int64), int(row[1].(int64)), row[2].(int64) != 0
		w.Origin = journal.Origin(row[3].(int64))
		w.Source, w.Key, w.Type = row[4].(string), row[5].(string), row[6].(string)
		w.ReceivedAt = time.UnixMicro(row[7].(int64))
		w.Resource, w.Rank = row[8].(string), hookonce.Rank{Kind: hookonce.RankKind(row[10].(string)), N: row[9].(int64)}
		w.Stale = row[11].(int64) != 0
		w.LogicalDuplicateKey, w.Vouched = row[12].(string), int16(row[13].(int64))
		w.Ordered = row[14].(int64) != 0
		return nil
	}, w.EventID, w.Destination, compare)
}

// groupsOf takes from at most limit ordering groups of a destination.
func (t *taking) groupsOf(p *part, limit int) error {
	type group struct {
		resource string
		event    int64 // that had the turn last
	}
	var groups []group
	err := t.groups.query(func(row []driver.Value) error {
		groups = append(groups, group{row[0].(string), row[1].(int64)})
		return nil
	}, p.Destination, t.now, int64(limit))
	for _, l := range groups {
		if err == nil && t.room(p) {
			err = t.group(p, l.resource, l.event)
		}
	}
	return err
}

// group takes the delivery whose turn it is, or notes when that will be due.
func (t *taking) group(p *part, resource string, last int64) error {
	var event, at int64
	var holder any // who has the turn already
	if err := t.turn.query(func(row []driver.Value) error {
		event, at = row[0].(int64), row[1].(int64)
		if begun := row[2].(int64); begun != 0 {
			holder = event
		}
		return nil
	}, p.Destination, resource, last); err != nil {
		return err
	}
	switch {
	case event == 0:
		_, err := t.dropGroup.exec(p.Destination, resource)
		return err
	case at > t.now:
		_, err := t.moveGroup.exec(p.Destination, resource, at, holder)
		return err
	}
	leased, err := t.take(p, event, at)
	if err == nil && leased {
		_, err = t.moveGroup.exec(p.Destination, resource, t.lease.UnixMicro(), event)
	}
	return err
}
