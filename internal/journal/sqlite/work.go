package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// bodyGone is the error left on a delivery that has nothing to deliver any more.
const bodyGone = "the body is gone: it was deleted before the delivery was done"

// Take implements [journal.Store].
func (s *Store) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) (work []*journal.Work, err error) {
	if want.Deliveries <= 0 {
		return nil, ctx.Err()
	}
	err = s.write(ctx, "taking work", func(w *writer) error {
		due, err := w.takeable(now, lease, want)
		if err != nil {
			return err
		}
		work, err = w.take(due, want.Bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return work, nil
}

// take leases what is due until it weighs as much as bytes, or buries it where the body is gone.
func (w *writer) take(due []*journal.Work, bytes int64) (work []*journal.Work, err error) {
	var weight int64
	for _, d := range due {
		if bytes > 0 && weight >= bytes {
			break
		}
		err := w.body.query(func(row []driver.Value) error {
			d.Header, d.Body = notNull(row[0].([]byte)), notNull(row[1].([]byte))
			return nil
		}, d.EventID)
		if err != nil {
			return nil, err
		}
		if d.Header == nil {
			_, err = w.bury.exec(bodyGone, d.EventID, d.Destination)
		} else {
			work = append(work, d)
			weight += int64(len(d.Header) + len(d.Body))
			_, err = w.lease.exec(d.Lease.UnixMicro(), d.EventID, d.Destination)
		}
		if err != nil {
			return nil, err
		}
	}
	return work, nil
}

// takeable returns what is due and wanted, as it will be once it is leased, without header and body.
func (w *writer) takeable(now, lease time.Time, want journal.Wanted) (due []*journal.Work, err error) {
	var destinations any // all
	if want.Destinations != nil {
		list, err := json.Marshal(want.Destinations)
		if err != nil {
			return nil, err
		}
		destinations = string(list)
	}
	err = w.due.query(func(row []driver.Value) error {
		due = append(due, &journal.Work{
			Held:   journal.Held{EventID: row[0].(int64), Destination: row[1].(string), Token: row[2].(int64) + 1},
			Tries:  int(row[3].(int64)) + 1,
			Source: row[4].(string), Key: row[5].(string), Type: row[6].(string),
			ReceivedAt: time.UnixMicro(row[7].(int64)),
			Lease:      lease,
		})
		return nil
	}, now.UnixMicro(), destinations, int64(want.Deliveries))
	return due, err
}

// Extend implements [journal.Store].
func (s *Store) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	still := make([]bool, len(held))
	if len(held) == 0 {
		return still, ctx.Err()
	}
	err := s.write(ctx, "extending leases", func(w *writer) error {
		for i, h := range held {
			n, err := w.extend.exec(lease.UnixMicro(), h.EventID, h.Destination, h.Token)
			if err != nil {
				return err
			}
			still[i] = n > 0
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return still, nil
}

// Finish implements [journal.Store].
func (s *Store) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	applied := make([]bool, len(outcomes))
	if len(outcomes) == 0 {
		return applied, ctx.Err()
	}
	err := s.write(ctx, "recording outcomes", func(w *writer) error {
		for i := range outcomes {
			var err error
			if applied[i], err = w.finish(&outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// finish records one outcome and reports whether its token was current.
func (w *writer) finish(o *journal.Outcome) (bool, error) {
	var n int64
	var err error
	text := o.ErrorText()
	switch o.State {
	case journal.Done:
		n, err = w.done.exec(o.EventID, o.Destination, o.Token)
	case journal.Dead:
		n, err = w.kept.exec(o.EventID, o.Destination, o.Token, string(o.State), nil, text)
	default:
		n, err = w.kept.exec(o.EventID, o.Destination, o.Token, string(o.State), o.Due.UnixMicro(), text)
	}
	if err != nil || n == 0 || o.State == journal.Pending {
		return n > 0, err
	}
	_, err = w.insertAttempt.exec(o.EventID, o.Destination, o.Token, string(o.State), int64(o.Status), text,
		o.Started.UnixMicro(), o.Duration.Microseconds())
	return true, err
}

// Orphans implements [journal.Store]. The file is locked to this process, so whoever held the work
// is gone.
func (s *Store) Orphans(ctx context.Context, now time.Time) (int, error) {
	var n int64
	err := s.write(ctx, "handing back orphans", func(w *writer) (err error) {
		n, err = w.orphans.exec(now.UnixMicro())
		return err
	})
	return int(n), err
}
