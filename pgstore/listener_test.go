package pgstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// One goroutine listens for all, and ends when nobody came for a while; the next one begins again.
func TestEarsStayOpenForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, running := newListener(), 0
		listen := func(ctx context.Context) {
			running++
			<-ctx.Done()
			running--
		}
		enter := func() (leave func()) {
			_, leave = e.join("something")
			e.start(listen)
			synctest.Wait()
			return leave
		}
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if running != want {
				t.Fatalf("%d listen, want %d", running, want)
			}
		}
		first, second := enter(), enter()
		first()
		after(10*linger, 1)
		second()
		after(linger/2, 1)
		third := enter()
		after(10*linger, 1)
		third()
		after(linger+time.Second, 0)
		enter()()
		after(0, 1)
		e.stop()
		after(0, 0)
		e.stop()
	})
}

// Everybody who waits for the same is told, nobody else, and everybody when something may have been missed.
func TestEarsTell(t *testing.T) {
	e := newListener()
	a, _ := e.join("one")
	b, leave := e.join("one")
	c, _ := e.join("two")
	told := func(want ...bool) {
		t.Helper()
		for i, ch := range []<-chan struct{}{a, b, c} {
			select {
			case <-ch:
				if !want[i] {
					t.Fatalf("number %d was told", i)
				}
			default:
				if want[i] {
					t.Fatalf("number %d was not told", i)
				}
			}
		}
	}
	told(false, false, false)
	e.hear("one")
	e.hear("one")
	told(true, true, false)
	told(false, false, false)
	e.count(1)
	if told(true, true, true); !e.open() {
		t.Error("nobody listens")
	}
	leave()
	e.count(-1)
	if told(true, false, true); e.open() {
		t.Error("somebody listens")
	}
	e.hear("three")
	told(false, false, false)
}
