package lru_test

import (
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"pgregory.net/rapid"

	"github.com/hookonce/hookonce/internal/lru"
)

// TestLikeTheLibrary: whatever is done to it, it has what a library that does more has.
func TestLikeTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		m := lru.New[int, int](size)
		model, err := simplelru.NewLRU[int, int](size, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 7).Draw(t, "key")
			var got, want int
			var is, should bool
			switch rapid.SampledFrom([]string{"add", "get", "peek", "remove"}).Draw(t, "what") {
			case "add":
				m.Add(key, i)
				model.Add(key, i)
			case "get":
				got, is = m.Get(key)
				want, should = model.Get(key)
			case "peek":
				got, is = m.Peek(key)
				want, should = model.Peek(key)
			case "remove":
				m.Remove(key)
				model.Remove(key)
			}
			if got != want || is != should || m.Len() != model.Len() || m.Len() > size {
				t.Fatalf("%d, %v of %d; want %d, %v of %d", got, is, m.Len(), want, should, model.Len())
			}
		}
	})
}
