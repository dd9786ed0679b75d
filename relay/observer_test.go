package relay_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// An observer that panics changes nothing, and is logged once for each call, with where it comes from.
func TestObserverThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := memstore.New()
		enqueue(t, store, "receipt")
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil },
			relay.WithObserver(func(context.Context, relay.Observation) { panic("a fault in the observer") }),
			relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		synctest.Wait()
		stopped(t, stop)
		expect(t, store, hookonce.StateDone)
		if strings.Count(log.String(), "the observer panicked") != 1 || !strings.Contains(log.String(), "observer_test.go") {
			t.Errorf("logged %s", &log)
		}
	})
}
