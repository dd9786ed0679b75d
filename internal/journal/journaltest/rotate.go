package journaltest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// rotation is what [Rotate] returns.
type rotation struct {
	journal.Store // for what nobody has rotated: the first
	stores        []journal.Store
	n             atomic.Int64
}

func (r *rotation) next() journal.Store { return r.stores[int(r.n.Add(1))%len(r.stores)] }

func (r *rotation) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	return r.next().Accept(ctx, batch, now, lease)
}

func (r *rotation) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	return r.next().Take(ctx, now, lease, want)
}

func (r *rotation) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	return r.next().Extend(ctx, held, lease)
}

func (r *rotation) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	return r.next().Finish(ctx, outcomes)
}

func (r *rotation) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	return r.next().RecordBypassed(ctx, outcomes)
}

func (r *rotation) Statuses(ctx context.Context, deliveries []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	return r.next().Statuses(ctx, deliveries)
}

func (r *rotation) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	return r.next().Known(ctx, source, keys)
}

func (r *rotation) KnownElsewhere(ctx context.Context, source string, strangers, keys []string) (map[string]journal.Elsewhere, error) {
	return r.next().KnownElsewhere(ctx, source, strangers, keys)
}

func (r *rotation) HasBefore(ctx context.Context, source string, before time.Time) (bool, error) {
	return r.next().HasBefore(ctx, source, before)
}

func (r *rotation) Missing(ctx context.Context, q journal.MissingQuery) ([]journal.MissingEvent, error) {
	return r.next().Missing(ctx, q)
}

func (r *rotation) MissingCounts(ctx context.Context, now time.Time) ([]journal.MissingCount, error) {
	return r.next().MissingCounts(ctx, now)
}

func (r *rotation) DismissMissing(ctx context.Context, d journal.Dismissal) (int64, error) {
	return r.next().DismissMissing(ctx, d)
}

func (r *rotation) TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (journal.Mark, bool, error) {
	return r.next().TakeMark(ctx, source, holder, now, lease)
}

func (r *rotation) AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (bool, error) {
	return r.next().AdvanceMark(ctx, source, token, a)
}

func (r *rotation) ReleaseMark(ctx context.Context, source string, token int64, res journal.MarkResult) (bool, error) {
	return r.next().ReleaseMark(ctx, source, token, res)
}

func (r *rotation) Orphans(ctx context.Context, now time.Time) (int, error) {
	return r.next().Orphans(ctx, now)
}

func (r *rotation) Purge(ctx context.Context, p journal.Purge) (journal.Purged, error) {
	return r.next().Purge(ctx, p)
}

func (r *rotation) Stats(ctx context.Context) (journal.Stats, error) { return r.next().Stats(ctx) }

func (r *rotation) Ping(ctx context.Context) error { return r.next().Ping(ctx) }

func (r *rotation) Close() error {
	var errs []error
	for _, s := range r.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
