package sqlite

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

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
func (w *writer) finish(o *journal.Outcome) (applied bool, err error) {
	var n int64
	text := o.ErrorText()
	switch o.State {
	case journal.Done:
		n, err = w.done.exec(o.EventID, o.Destination, o.Token)
	case journal.Dead:
		n, err = w.kept.exec(o.EventID, o.Destination, o.Token, string(o.State), nil, text, false, string(o.Kind), int64(o.Status))
	default:
		n, err = w.kept.exec(o.EventID, o.Destination, o.Token, string(o.State), o.Due.UnixMicro(), text, o.Spared, string(o.Kind), int64(o.Status))
	}
	if err != nil || n == 0 {
		return false, err
	}
	return true, w.ended(o)
}

// ended does what follows from an outcome that applies.
func (w *writer) ended(o *journal.Outcome) error {
	if o.Group != "" {
		if _, err := w.freeGroup.exec(o.Destination, o.Group, o.EventID, o.Started.UnixMicro()); err != nil {
			return err
		}
	}
	if o.State == journal.Done && !o.Rank.IsZero() {
		if _, err := w.raise.exec(o.Destination, o.Group, o.Rank.N, orNull(string(o.Rank.Kind)), o.EventID); err != nil {
			return err
		}
	}
	if o.State == journal.Pending {
		return nil
	}
	if a := o.Response; a != nil && o.State == journal.Done {
		if _, err := w.insertAnswer.exec(o.EventID, o.Destination, int64(a.Status), notNull(a.Header), notNull(a.Body)); err != nil {
			return err
		}
	}
	_, err := w.insertAttempt.exec(o.EventID, o.Destination, o.Token, string(o.State), int64(o.Status), o.ErrorText(),
		o.Started.UnixMicro(), o.Duration.Microseconds(), o.KeptExcerpt(), string(o.Kind))
	return err
}

// Orphans implements [journal.Store]. The file is locked to this process, so whoever held the work
// is gone.
func (s *Store) Orphans(ctx context.Context, now time.Time) (int, error) {
	var n int64
	err := s.write(ctx, "handing back orphans", func(w *writer) (err error) {
		if n, err = w.orphans.exec(now.UnixMicro()); err == nil {
			_, err = w.orphanGroups.exec(now.UnixMicro())
		}
		return err
	})
	return int(n), err
}
