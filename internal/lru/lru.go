// Package lru is a map of a bounded size, for packages that may carry no other module: a new entry takes the place of the
// one that was used the longest time ago.
package lru

import "container/list"

// Map is such a map. Not safe for concurrent use.
type Map[K comparable, V any] struct {
	size    int
	order   *list.List // of *entry, the one that was used last in front
	entries map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty map that keeps at most size entries, of which there must be one at least.
func New[K comparable, V any](size int) *Map[K, V] {
	if size < 1 {
		panic("lru: a map of no entries")
	}
	return &Map[K, V]{size, list.New(), map[K]*list.Element{}}
}

// Get returns the value under a key, which counts as used, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	e, ok := m.entries[key]
	if !ok {
		return value, false
	}
	m.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Peek is [Map.Get], and does not count as use.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	e, ok := m.entries[key]
	if !ok {
		return value, false
	}
	return e.Value.(*entry[K, V]).value, true
}

// Add keeps the value under the key, in place of another, which counts as used.
func (m *Map[K, V]) Add(key K, value V) {
	if e, ok := m.entries[key]; ok {
		e.Value.(*entry[K, V]).value = value
		m.order.MoveToFront(e)
		return
	}
	if m.order.Len() >= m.size {
		m.drop(m.order.Back())
	}
	m.entries[key] = m.order.PushFront(&entry[K, V]{key, value})
}

// Remove forgets a key.
func (m *Map[K, V]) Remove(key K) {
	if e, ok := m.entries[key]; ok {
		m.drop(e)
	}
}

// Len returns how many entries there are.
func (m *Map[K, V]) Len() int { return m.order.Len() }

func (m *Map[K, V]) drop(e *list.Element) {
	m.order.Remove(e)
	delete(m.entries, e.Value.(*entry[K, V]).key)
}
