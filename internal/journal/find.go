package journal

import (
	"context"
	"errors"

	"github.com/hookonce/hookonce"
)

// FindAsWritten is [Reader.Find] for people: it takes the key under which an event is stored, or else the one that its sender
// wrote, which is what they have. A long one is stored as its digest.
func FindAsWritten(ctx context.Context, r Reader, source, key string) (int64, error) {
	id, err := r.Find(ctx, source, key)
	if stored := hookonce.NormalKey(key); errors.Is(err, ErrNoEvent) && stored != key {
		return r.Find(ctx, source, stored)
	}
	return id, err
}
