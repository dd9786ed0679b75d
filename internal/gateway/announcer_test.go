package gateway

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
)

// words counts what a gateway says of itself.
type words struct {
	journal.Registry
	said atomic.Int64
}

func (w *words) Announce(context.Context, journal.Gateway, time.Time) error {
	w.said.Add(1)
	return nil
}
func (w *words) Withdraw(context.Context, string) error { return nil }

// What a reload changed is told at once: others decide by it to whom a replay goes.
func TestAnnouncerHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f announcer
		f.hurry() // before there is a store nobody is told
		w := new(words)
		f.join(Options{Now: time.Now}, w, func() []fleet.Target { return nil })
		synctest.Wait()
		f.hurry()
		synctest.Wait()
		if n := w.said.Load(); n != 2 {
			t.Errorf("it said %d words without time passing, want 2", n)
		}
		f.leave(t.Context())
	})
}
