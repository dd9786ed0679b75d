// Package standby lets people's questions about the journal be answered by a copy of its database, so that looking
// never takes anything from events.
//
// Nothing is decided by what a copy says, because it may be behind: [Records] asks it for pages alone, and only by the
// methods of [Pages]. Everything else goes to the primary, and so does a question that the copy cannot answer, that is
// asked while it is away, or that follows something that an operator did and that the copy does not have yet.
package standby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/tally"
)

// Pages are the questions that a copy may answer: those whose answers people look at. A method of the journal's store that
// is not among them is never asked of a copy.
type Pages interface {
	List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error)
	Summaries(ctx context.Context, ids []int64) ([]journal.Summary, error)
	Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error
	Find(ctx context.Context, source, key string) (int64, error)
	FindAnywhere(ctx context.Context, key string) ([]journal.Summary, error)
	History(ctx context.Context, id int64) (*journal.History, error)
	FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error)
	Open(ctx context.Context) ([]journal.OpenCount, error)
	Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error)
	Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error)
}

// Copy is a copy of the database.
type Copy interface {
	Pages
	// Replayed returns how far the copy has the primary's log.
	Replayed(ctx context.Context) (pgstandby.Replayed, error)
}

// Options configure [New].
type Options struct {
	// Primary answers everything else.
	Primary journal.Store
	// Written returns how far the primary has written its log.
	Written func(context.Context) (pgstandby.Written, error)
	// Copy answers pages.
	Copy Copy
	// Now is the clock.
	Now func() time.Time
	// Logger is told when the copy is away, and when it is back.
	Logger *slog.Logger
}

const (
	// interval is the time between two looks at how far the copy is.
	interval = time.Second
	// lookTime is for one of them.
	lookTime = 2 * time.Second
	// Farthest is how far back it is known what the primary had written. A copy that is farther behind is not asked: whoever is
	// paged looks at what is now.
	Farthest = time.Minute
)

// Records is the journal's store, of which a copy answers pages. Close ends its looks, and closes nothing else.
type Records struct {
	journal.Store // the primary
	opt           Options
	stop          context.CancelFunc
	ended         chan struct{}

	mu      sync.Mutex
	primary pgstandby.Written // as it last was; the marks are of its timeline
	written []mark            // what the primary had written, oldest first
	caught  time.Time         // the copy has everything up to this moment; zero: it is away, or nothing is known
	changed time.Time         // when an operator last did something here
	said    bool              // that the copy is away
}

// mark is the position up to which the primary had written at a moment.
type mark struct {
	position uint64
	at       time.Time
}

// New begins to look at how far the copy is.
func New(o Options) *Records {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Records{Store: o.Primary, opt: o, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			r.look(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return r
}

// Close implements [journal.Store], and leaves the primary open.
func (r *Records) Close() error {
	r.stop()
	<-r.ended
	return nil
}

// look finds out up to which moment the copy has everything: the last of those at which the primary had written no more
// than the copy has by now. The primary is asked first, or what it writes meanwhile would make the copy look older; and once
// more before the copy is said to have diverged, which may have got what was written meanwhile. Of a primary that does not
// answer nothing of the kind can be said.
func (r *Records) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	at := r.opt.Now()
	primary, silent := r.ask(ctx)
	if silent == nil {
		r.note(ctx, mark{primary.LSN, at})
	}
	replayed, err := r.opt.Copy.Replayed(ctx)
	if err == nil && silent == nil && replayed.Follows(primary) != nil {
		if primary, silent = r.ask(ctx); silent != nil {
			return // what was known of the copy stands: whether it follows nobody says now
		}
		err = replayed.Follows(primary)
	}
	if err != nil {
		r.lost(ctx, err)
		return
	}
	r.found(replayed.LSN)
}

// ask returns where the primary is, with the earliest position that was seen of its timeline. On another timeline there may be
// something else at the positions that were noted.
func (r *Records) ask(ctx context.Context) (pgstandby.Written, error) {
	w, err := r.opt.Written(ctx)
	if err != nil {
		return w, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.Database == r.primary.Database && w.Timeline == r.primary.Timeline {
		w.Since = min(w.Since, r.primary.Since)
	} else {
		r.written, r.caught = nil, time.Time{}
	}
	r.primary = w
	return w, nil
}

// note adds a mark, and forgets those that are too old: a copy that does not have them is too far behind.
func (r *Records) note(ctx context.Context, m mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, m)
	if old := slices.IndexFunc(r.written, func(w mark) bool { return m.at.Sub(w.at) <= Farthest }); old > 0 {
		r.written = slices.Delete(r.written, 0, old)
		r.leave(ctx, errBehind)
	}
}

// errBehind says that the copy does not have what the primary had written that long ago.
var errBehind = fmt.Errorf("it is more than %v behind", Farthest)

// found notes how far the copy is.
func (r *Records) found(replayed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.written) > 0 && r.written[0].position <= replayed {
		r.caught = r.written[0].at
		r.written = r.written[1:]
	}
	if r.said && !r.caught.IsZero() {
		r.said = false
		r.opt.Logger.Info("gateway: store_read answers again; pages are read there")
	}
}

// lost notes that the copy cannot be asked. One that has diverged does not get what was written up to now, although the primary's
// positions will pass its own.
func (r *Records) lost(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, pgstandby.ErrNoCopy) || errors.Is(err, pgstandby.ErrDiverged) {
		r.written = nil
	}
	r.leave(ctx, err)
}

// leave has the primary asked. The caller holds the mutex.
func (r *Records) leave(ctx context.Context, why error) {
	r.caught = time.Time{}
	if !r.said && !errors.Is(context.Cause(ctx), context.Canceled) {
		r.said = true
		r.opt.Logger.Warn("gateway: store_read is away; pages are read at the primary until it is back", "error", why)
	}
}

// Changed has pages show what an operator did up to now.
func (r *Records) Changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = r.opt.Now()
}

// AsOf returns the moment up to which the copy has everything, and whether it is asked at all.
func (r *Records) AsOf() (moment time.Time, asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.caught, !r.caught.IsZero() && r.caught.After(r.changed)
}

// pages runs a question at the copy, and at the primary if that is where to ask, or if the copy does not know the answer.
func pages[T any](ctx context.Context, r *Records, question func(Pages) (T, error)) (T, error) {
	moment, asked := r.AsOf()
	if !asked || journal.Decides(ctx) {
		return question(r.Store)
	}
	answer, err := question(r.opt.Copy)
	switch {
	case err == nil:
		journal.NoteAsOf(ctx, moment)
		return answer, nil
	case ctx.Err() != nil:
		return answer, err
	case !errors.Is(err, journal.ErrNoEvent): // it may have come since
		r.lost(ctx, err)
	}
	return question(r.Store)
}

// List implements [Pages].
func (r *Records) List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error) {
	return pages(ctx, r, func(p Pages) (journal.Page, error) { return p.List(ctx, f, before, limit) })
}

// Summaries implements [Pages].
func (r *Records) Summaries(ctx context.Context, ids []int64) ([]journal.Summary, error) {
	return pages(ctx, r, func(p Pages) ([]journal.Summary, error) { return p.Summaries(ctx, ids) })
}

// Contents implements [Pages]. What fails half way is asked again from the beginning, so see may be called twice for an event.
func (r *Records) Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error {
	refused, err := pages(ctx, r, func(p Pages) (refused, err error) {
		err = p.Contents(ctx, ids, func(id int64, header, body []byte) error {
			refused = see(id, header, body)
			return refused
		})
		if refused != nil {
			err = nil // which is see's, and no fault of whoever was asked
		}
		return refused, err
	})
	if refused != nil {
		return refused
	}
	return err
}

// Find implements [Pages].
func (r *Records) Find(ctx context.Context, source, key string) (int64, error) {
	return pages(ctx, r, func(p Pages) (int64, error) { return p.Find(ctx, source, key) })
}

// FindAnywhere implements [Pages].
func (r *Records) FindAnywhere(ctx context.Context, key string) ([]journal.Summary, error) {
	return pages(ctx, r, func(p Pages) ([]journal.Summary, error) { return p.FindAnywhere(ctx, key) })
}

// History implements [Pages].
func (r *Records) History(ctx context.Context, id int64) (*journal.History, error) {
	return pages(ctx, r, func(p Pages) (*journal.History, error) { return p.History(ctx, id) })
}

// FailureGroups implements [Pages].
func (r *Records) FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error) {
	return pages(ctx, r, func(p Pages) (journal.Failures, error) { return p.FailureGroups(ctx, since) })
}

// Open implements [Pages].
func (r *Records) Open(ctx context.Context) ([]journal.OpenCount, error) {
	return pages(ctx, r, func(p Pages) ([]journal.OpenCount, error) { return p.Open(ctx) })
}

// Audits implements [Pages].
func (r *Records) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	return pages(ctx, r, func(p Pages) ([]journal.Audit, error) { return p.Audits(ctx, before, limit) })
}

// Tallies implements [Pages].
func (r *Records) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	return pages(ctx, r, func(p Pages) ([]tally.Point, error) { return p.Tallies(ctx, q) })
}
