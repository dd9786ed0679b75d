package journal

import (
	"errors"

	"github.com/hookonce/hookonce"
)

// AsWritten finds by a key for people: it asks for the key under which an event is stored, or else
// for the one that its sender wrote, which is what they have. A long one is stored as its digest.
func AsWritten[T any](key string, find func(key string) (T, error)) (T, error) {
	found, err := find(key)
	if stored := hookonce.NormalKey(key); errors.Is(err, ErrNoEvent) && stored != key {
		return find(stored)
	}
	return found, err
}
