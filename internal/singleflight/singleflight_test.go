package singleflight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/singleflight"
)

func TestTheOthersGetTheOutcomeOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[string, int]
		c, first := g.Join("a", time.Minute)
		if !first {
			t.Fatal("nobody is the first")
		}
		if _, first := g.Join("b", time.Minute); !first {
			t.Error("another key waits")
		}
		outcomes := make(chan int, 2)
		for range 2 {
			go func() {
				same, first := g.Join("a", time.Minute)
				outcome, known := same.Wait(t.Context())
				if first || !known {
					t.Errorf("first: %v, known: %v", first, known)
				}
				outcomes <- outcome
			}()
		}
		synctest.Wait()
		g.Finish("a", c, 7)
		if a, b := <-outcomes, <-outcomes; a != 7 || b != 7 {
			t.Errorf("outcomes %d and %d", a, b)
		}
		if _, first := g.Join("a", time.Minute); !first {
			t.Error("a caller after the outcome is given the old one")
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	var g singleflight.Group[string, int]
	c, _ := g.Join("a", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, known := c.Wait(ctx); known {
		t.Error("an outcome is known that is none")
	}
}

// One that was given up and comes back in the end tells those who waited for it, and does not end the call that took
// its place.
func TestFirstThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[string, int]
		old, _ := g.Join("a", time.Minute)
		time.Sleep(time.Minute - 1)
		if _, first := g.Join("a", time.Minute); first {
			t.Fatal("it was given up too early")
		}
		time.Sleep(time.Nanosecond)
		current, first := g.Join("a", time.Minute)
		if !first {
			t.Fatal("it was not given up")
		}
		g.Finish("a", old, 1)
		if outcome, known := old.Wait(t.Context()); outcome != 1 || !known {
			t.Errorf("the first's outcome is %d, %v", outcome, known)
		}
		if same, first := g.Join("a", time.Minute); first || same != current {
			t.Error("the first that came back ended the call that took its place")
		}
	})
}
