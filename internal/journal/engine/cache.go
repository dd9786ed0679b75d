package engine

import (
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/lru"
)

// doneCache remembers the keys of events that are done, and nothing else: whatever it forgets or
// never knew is asked of the store.
type doneCache struct {
	mu    sync.Mutex
	keys  *lru.Map[hookonce.Ref, doneEvent] // nil: caching is off
	since epoch
	off   bool // for good
}

type doneEvent struct {
	id     int64
	digest string
}

// epoch is the time between two replays of what is done, any of which the cache may know.
type epoch int64

func newDoneCache(size int) *doneCache {
	if size == 0 {
		return &doneCache{}
	}
	return &doneCache{keys: lru.New[hookonce.Ref, doneEvent](size)}
}

// now returns the epoch in which the store is asked what is done.
func (c *doneCache) now() epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since
}

// add remembers that the event of e, stored under id with e's digest, is done. If that is from an earlier
// epoch, it may be so no more.
func (c *doneCache) add(e *journal.Event, id int64, known epoch) {
	if c.keys == nil || e.Key == "" || journal.Coalesces(e.Key) || e.Listed {
		return // done work never swallows what coalesces, and what comes from a list knows no digest to compare with
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known != c.since || c.off {
		return
	}
	if done, ok := c.keys.Get(e.Ref()); ok {
		if done.id == id && done.digest == string(e.Digest) {
			return
		}
		c.keys.Remove(e.Ref()) // or the entry would keep the text of its key beside that of what is known now
	}
	// The strings may be parts of a whole request, which the cache must not keep alive. One object has all three: there are
	// many, and the garbage collector visits each.
	text := e.Source + e.Key + string(e.Digest)
	at := len(e.Source) + len(e.Key)
	key, done := hookonce.Ref{Source: text[:len(e.Source)], Key: text[len(e.Source):at]}, doneEvent{id, text[at:]}
	c.keys.Add(key, done)
}

// forget begins a new epoch: done events may have begun again.
func (c *doneCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since++
	if c.keys != nil {
		c.keys.Clear()
	}
}

// end forgets everything and remembers nothing any more, because nobody would tell of done events that begin
// again.
func (c *doneCache) end() {
	c.mu.Lock()
	c.off = true
	c.mu.Unlock()
	c.forget()
}

// lookup answers for e if its key is known to be done.
func (c *doneCache) lookup(e *journal.Event) (journal.Result, bool) {
	if c.keys == nil || e.Key == "" {
		return journal.Result{}, false
	}
	c.mu.Lock()
	done, ok := c.keys.Get(e.Ref())
	c.mu.Unlock()
	if !ok {
		return journal.Result{}, false
	}
	res := journal.Result{Status: journal.Duplicate, ID: done.id, Done: true}
	if !e.Listed && done.digest != string(e.Digest) {
		res.Status = journal.Conflict
	}
	return res, true
}
