package gateway

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// keyHistories are what senders were told of keys, and when.
type keyHistories struct {
	start time.Time
	mu    sync.Mutex
	of    map[string][]porcupine.Operation // by key; the output is a verdict, empty where nobody knows
}

func newKeyHistories() *keyHistories {
	return &keyHistories{start: time.Now(), of: map[string][]porcupine.Operation{}}
}

// sent begins a request with a key, and returns what ends it.
func (h *keyHistories) sent(key string) func(verdict string) {
	call := time.Since(h.start).Nanoseconds()
	return func(verdict string) {
		end := time.Since(h.start).Nanoseconds()
		if verdict == "" {
			end = math.MaxInt64 // it may be on its way still
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.of[key] = append(h.of[key], porcupine.Operation{Call: call, Return: end, Output: verdict})
	}
}

// oneClaim is a key that is on record or not: "accepted" puts it there, "duplicate" finds it there, and what nobody was told of has
// put it there or has not.
var oneClaim = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{false} },
	Step: func(onRecord, _, verdict any) []any {
		known := onRecord.(bool)
		switch {
		case verdict == "":
			return []any{known, true}
		case verdict == "accepted" && !known, verdict == "duplicate" && known:
			return []any{true}
		}
		return nil
	},
}).ToModel()

// impossible returns what was told of a key if no order of the requests, each at some moment between its beginning and its end, explains
// it. Of those that nobody was told of the first is enough: it may have done whatever a later one could.
func impossible(all []porcupine.Operation) string {
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	unknown := 0
	told := slices.DeleteFunc(slices.Clone(all), func(o porcupine.Operation) bool {
		if o.Output == "" {
			unknown++
		}
		return o.Output == "" && unknown > 1
	})
	if porcupine.CheckOperationsTimeout(oneClaim, told, patience) == porcupine.Ok {
		return ""
	}
	var b strings.Builder
	for _, o := range all {
		end := "…"
		if o.Return != math.MaxInt64 {
			end = time.Duration(o.Return).String()
		}
		fmt.Fprintf(&b, " [%v %s %q]", time.Duration(o.Call), end, o.Output)
	}
	return b.String()
}

// check reports the keys of which senders were told what cannot be, and returns how many requests were looked at.
func (h *keyHistories) check(t *testing.T) (requests, unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, all := range h.of {
		requests += len(all)
		for _, o := range all {
			if o.Output == "" {
				unknown++
			}
		}
		if what := impossible(all); what != "" {
			t.Errorf("%s has no history with one claim:%s", key, what)
		}
	}
	return requests, unknown
}

// What is judged impossible is so, and nothing else is.
func TestKeyHistoriesAreJudged(t *testing.T) {
	t.Parallel()
	op := func(call, end int64, verdict string) porcupine.Operation {
		if verdict == "" {
			end = math.MaxInt64
		}
		return porcupine.Operation{Call: call, Return: end, Output: verdict}
	}
	for name, c := range map[string]struct {
		ops []porcupine.Operation
		can bool
	}{
		"a claim and its copy":                      {[]porcupine.Operation{op(1, 2, "accepted"), op(3, 4, "duplicate")}, true},
		"two at once, told in either order":         {[]porcupine.Operation{op(1, 5, "accepted"), op(2, 3, "duplicate")}, true},
		"two claims":                                {[]porcupine.Operation{op(1, 2, "accepted"), op(3, 4, "accepted")}, false},
		"two claims at once":                        {[]porcupine.Operation{op(1, 9, "accepted"), op(2, 8, "accepted")}, false},
		"two claims around an unknown one":          {[]porcupine.Operation{op(1, 2, "accepted"), op(3, 0, ""), op(4, 5, "accepted")}, false},
		"a copy of nothing":                         {[]porcupine.Operation{op(1, 2, "duplicate"), op(3, 4, "accepted")}, false},
		"a copy of what nobody was told of":         {[]porcupine.Operation{op(1, 0, ""), op(3, 4, "duplicate")}, true},
		"a claim after what came to nothing":        {[]porcupine.Operation{op(1, 0, ""), op(3, 4, "accepted"), op(5, 6, "duplicate")}, true},
		"a copy before what nobody was told of":     {[]porcupine.Operation{op(1, 2, "duplicate"), op(3, 0, "")}, false},
		"many unknown ones":                         {append(slices.Repeat([]porcupine.Operation{op(1, 0, "")}, 300), op(2, 3, "duplicate"), op(4, 5, "duplicate")), true},
		"a claim after a copy of an unknown one":    {[]porcupine.Operation{op(1, 0, ""), op(2, 3, "duplicate"), op(4, 5, "accepted")}, false},
		"a verdict that this gateway does not give": {[]porcupine.Operation{op(1, 2, "accepted"), op(3, 4, "conflict")}, false},
	} {
		if what := impossible(c.ops); (what == "") != c.can {
			t.Errorf("%s: %q", name, what)
		}
	}
}
