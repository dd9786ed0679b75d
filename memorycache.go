package hookonce

import (
	"bytes"
	"container/list"
	"context"
	"sync"
)

// MemoryCache is a [DoneCache] in this process: it remembers the keys that were asked for last. See
// [NewMemoryCache].
type MemoryCache struct {
	mu      sync.Mutex
	limit   int
	entries map[Ref]*list.Element
	recent  list.List // of remembered, the latest first
}

type remembered struct {
	ref    Ref
	digest []byte
}

// NewMemoryCache returns a cache of up to limit keys, each of which takes about 300 bytes. It is enough
// where copies follow each other closely and one process gets all of them. It panics if limit is not
// positive.
func NewMemoryCache(limit int) *MemoryCache {
	if limit <= 0 {
		panic("hookonce: NewMemoryCache needs room for a key")
	}
	return &MemoryCache{limit: limit, entries: make(map[Ref]*list.Element)}
}

// Done implements [DoneCache].
func (m *MemoryCache) Done(_ context.Context, ref Ref) (digest []byte, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[ref]
	if !ok {
		return nil, false, nil
	}
	m.recent.MoveToFront(e)
	return bytes.Clone(e.Value.(remembered).digest), true, nil
}

// Remember implements [DoneCache].
func (m *MemoryCache) Remember(_ context.Context, ref Ref, digest []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[ref]; ok {
		m.recent.Remove(e)
	}
	m.entries[ref] = m.recent.PushFront(remembered{ref, bytes.Clone(digest)})
	if m.recent.Len() > m.limit {
		oldest := m.recent.Remove(m.recent.Back()).(remembered)
		delete(m.entries, oldest.ref)
	}
	return nil
}
