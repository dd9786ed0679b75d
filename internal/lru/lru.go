// Package lru is a map of a bounded size: a new entry takes the place of the one that was used the longest time
// ago. Programs that use the library carry it, so it needs no other module.
package lru

// Map is such a map. Not safe for concurrent use.
type Map[K comparable, V any] struct {
	size    int
	entries map[K]*entry[K, V]
	ring    entry[K, V] // of all entries, in the order of their use: after it the last, before it the first
}

// entry is one object, with its neighbours: a full map has as many as entries, which the garbage collector visits.
type entry[K comparable, V any] struct {
	key          K
	value        V
	older, newer *entry[K, V]
}

// New returns an empty map that keeps at most size entries, of which there must be one at least.
func New[K comparable, V any](size int) *Map[K, V] {
	if size < 1 {
		panic("lru: a map of no entries")
	}
	m := &Map[K, V]{size: size}
	m.Clear()
	return m
}

// Get returns the value under a key, which counts as used, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	e, ok := m.entries[key]
	if !ok {
		return value, false
	}
	m.use(e)
	return e.value, true
}

// Peek is [Map.Get], and does not count as use.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	e, ok := m.entries[key]
	if !ok {
		return value, false
	}
	return e.value, true
}

// Add keeps the value under the key, in place of another, which counts as used.
func (m *Map[K, V]) Add(key K, value V) {
	if e, ok := m.entries[key]; ok {
		e.value = value
		m.use(e)
		return
	}
	if len(m.entries) >= m.size {
		m.drop(m.ring.newer)
	}
	e := &entry[K, V]{key: key, value: value}
	m.entries[key] = e
	m.insert(e)
}

// Remove forgets a key.
func (m *Map[K, V]) Remove(key K) {
	if e, ok := m.entries[key]; ok {
		m.drop(e)
	}
}

// Clear forgets all keys.
func (m *Map[K, V]) Clear() {
	m.entries = map[K]*entry[K, V]{}
	m.ring.older, m.ring.newer = &m.ring, &m.ring
}

// Len returns how many entries there are.
func (m *Map[K, V]) Len() int { return len(m.entries) }

func (m *Map[K, V]) use(e *entry[K, V]) {
	unlink(e)
	m.insert(e)
}

func (m *Map[K, V]) drop(e *entry[K, V]) {
	unlink(e)
	delete(m.entries, e.key)
}

// insert makes e the entry that was used last.
func (m *Map[K, V]) insert(e *entry[K, V]) {
	e.newer, e.older = &m.ring, m.ring.older
	e.older.newer, m.ring.older = e, e
}

func unlink[K comparable, V any](e *entry[K, V]) {
	e.older.newer, e.newer.older = e.newer, e.older
}
