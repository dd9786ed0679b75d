package lru_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookonce/hookonce/internal/lru"
)

// model is a list of entries, the one that was used last at the end.
type model struct {
	size    int
	entries [][2]int
}

func (m *model) find(key int) int {
	return slices.IndexFunc(m.entries, func(e [2]int) bool { return e[0] == key })
}

func (m *model) get(key int, use bool) (value int, ok bool) {
	i := m.find(key)
	if i < 0 {
		return 0, false
	}
	value = m.entries[i][1]
	if use {
		m.add(key, value)
	}
	return value, true
}

func (m *model) add(key, value int) {
	m.remove(key)
	m.entries = append(m.entries, [2]int{key, value})
	m.entries = m.entries[max(0, len(m.entries)-m.size):]
}

func (m *model) remove(key int) {
	if i := m.find(key); i >= 0 {
		m.entries = slices.Delete(m.entries, i, i+1)
	}
}

// TestForgetsWhatWasNotUsedForLongest: whatever is done to it, it has what a list of the last uses has.
func TestForgetsWhatWasNotUsedForLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &model{size: rapid.IntRange(1, 5).Draw(t, "size")}
		m := lru.New[int, int](want.size)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 7).Draw(t, "key")
			switch rapid.SampledFrom([]string{"add", "add", "get", "remove", "clear"}).Draw(t, "what") {
			case "add":
				m.Add(key, i)
				want.add(key, i)
			case "get":
				got, ok := m.Get(key)
				if value, should := want.get(key, true); got != value || ok != should {
					t.Fatalf("%d, %v; want %d, %v", got, ok, value, should)
				}
			case "remove":
				m.Remove(key)
				want.remove(key)
			case "clear":
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					m.Clear()
					want.entries = nil
				}
			}
			for key := range 8 {
				got, ok := m.Peek(key)
				if value, should := want.get(key, false); got != value || ok != should {
					t.Fatalf("%d is %d, %v; want %d, %v", key, got, ok, value, should)
				}
			}
			if m.Len() != len(want.entries) {
				t.Fatalf("%d entries; want %d", m.Len(), len(want.entries))
			}
		}
	})
}

// BenchmarkAdd adds to a full map: an entry is one object.
func BenchmarkAdd(b *testing.B) {
	m := lru.New[int, int](1 << 10)
	b.ReportAllocs()
	for i := range b.N {
		m.Add(i, i)
	}
}
