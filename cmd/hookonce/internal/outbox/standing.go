package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hookonce/hookonce"
)

// standing is an outbox in a SQLite file that works only while the file is where the application has it. SQLite goes on with a
// file that has no name any more, and connections that are made later open the one that took its place: the relay would
// see nothing of what the application enqueues, or record outcomes of one outbox in another.
type standing struct {
	Store
	path string
	info fs.FileInfo // of the file when it was opened
}

// check returns an error that no waiting mends if the file is not in its place.
func (s standing) check() error {
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hookonce.Permanent(fmt.Errorf("the file %s was deleted or moved while it was open; put it back, and start again", s.path))
	case err != nil:
		return fmt.Errorf("whether the file is in its place cannot be found out: %w", err)
	case !os.SameFile(now, s.info):
		return hookonce.Permanent(fmt.Errorf("the file %s was replaced by another while it was open; start again to work on that", s.path))
	}
	return nil
}

// TakeEffects implements [hookonce.EffectQueue]. What was taken from a file that is gone is not begun.
func (s standing) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	taken, err := s.Store.TakeEffects(ctx, req)
	// Where nobody can look, what was taken is begun: it would wait for the end of its lease, as if its relay had died.
	if gone := s.check(); err == nil && hookonce.IsPermanent(gone) {
		return nil, gone
	}
	return taken, err
}

// CompleteEffect implements [hookonce.EffectQueue].
func (s standing) CompleteEffect(ctx context.Context, e hookonce.QueuedEffect) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Store.CompleteEffect(ctx, e)
}

// FailEffect implements [hookonce.EffectQueue].
func (s standing) FailEffect(ctx context.Context, e hookonce.QueuedEffect, f hookonce.Failure, retry time.Time) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Store.FailEffect(ctx, e, f, retry)
}
