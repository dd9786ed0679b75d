package hookoncetest_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce/hookoncetest"
)

// inMemory remembers events behind a lock of its process.
func inMemory(s shop) http.Handler {
	var mu sync.Mutex
	seen := map[string]bool{}
	return endpoint(func(ctx context.Context, event string) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[event] {
			return nil
		}
		if err := book(context.WithoutCancel(ctx), s, event); err != nil {
			return err
		}
		seen[event] = true
		return nil
	})
}

// inTurn hands requests to the handlers in turn, as whatever stands before several processes does.
func inTurn(handlers ...http.Handler) http.Handler {
	var n atomic.Uint64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[n.Add(1)%uint64(len(handlers))].ServeHTTP(w, r)
	})
}

// What is remembered in memory passes a storm, and is caught as soon as there are two that remember.
func TestStormOfSeveralProcesses(t *testing.T) {
	s := openShop(t)
	hookoncetest.Storm(t, inMemory(s), stripe).Once(t, s.count(t))

	got := watch(t, func(tb testing.TB) {
		hookoncetest.Storm(tb, inTurn(inMemory(s), inMemory(s)), stripe).Once(tb, s.count(t))
	})
	if want := "happened 2 times: copies one after the other"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}
