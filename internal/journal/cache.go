package journal

import (
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
)

// ref is a key inside its source, compared in full.
type ref struct{ source, key string }

// doneCache remembers the keys of events that are done, and nothing else: whatever it forgets or
// never knew is asked of the store.
type doneCache struct {
	keys *lru.Cache[ref, doneEvent] // nil: caching is off
}

type doneEvent struct {
	id     int64
	digest string
}

func newDoneCache(size int) (doneCache, error) {
	if size < 0 {
		return doneCache{}, nil
	}
	keys, err := lru.New[ref, doneEvent](size)
	return doneCache{keys}, err
}

// add remembers that the event of e, stored under id with e's digest, is done.
func (c doneCache) add(e *Entry, id int64) {
	if c.keys == nil || e.Key == "" || Coalesces(e.Key) {
		return // done work never swallows what coalesces
	}
	// The strings may be parts of a whole request; the cache must not keep that alive.
	c.keys.Add(ref{strings.Clone(e.Source), strings.Clone(e.Key)}, doneEvent{id, string(e.Digest)})
}

// lookup answers for e if its key is known to be done.
func (c doneCache) lookup(e *Entry) (Result, bool) {
	if c.keys == nil || e.Key == "" {
		return Result{}, false
	}
	done, ok := c.keys.Get(ref{e.Source, e.Key})
	if !ok {
		return Result{}, false
	}
	res := Result{Status: Duplicate, ID: done.id, Done: true}
	if done.digest != string(e.Digest) {
		res.Status = Conflict
	}
	return res, true
}
