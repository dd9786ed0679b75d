package journal

import (
	"context"
	"sync"
	"time"
)

// Something is decided by the answers under some contexts, and under others they are only looked at. What is only looked
// at may come from a copy of the database that is a little behind, and then says how far.
type (
	decides struct{}
	notes   struct{}
)

// Deciding returns a context under which something is decided by the answers: no copy is asked.
func Deciding(ctx context.Context) context.Context { return context.WithValue(ctx, decides{}, true) }

// Decides reports whether ctx comes from [Deciding].
func Decides(ctx context.Context) bool { return ctx.Value(decides{}) != nil }

// AsOf is the moment up to which what was answered under a context is complete. It is safe for concurrent use.
type AsOf struct {
	mu     sync.Mutex
	moment time.Time
}

// NotingAsOf returns a context under which it is noted how old answers are.
func NotingAsOf(ctx context.Context) (context.Context, *AsOf) {
	a := new(AsOf)
	return context.WithValue(ctx, notes{}, a), a
}

// NoteAsOf notes that an answer has all that was there at the moment.
func NoteAsOf(ctx context.Context, moment time.Time) {
	if a, ok := ctx.Value(notes{}).(*AsOf); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.moment.IsZero() || moment.Before(a.moment) {
			a.moment = moment
		}
	}
}

// Moment returns the oldest moment that was noted; zero: nothing came from a copy.
func (a *AsOf) Moment() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.moment
}
