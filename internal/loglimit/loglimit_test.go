package loglimit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is a log, and what was written into it.
type book struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *book) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(line)
}

func (b *book) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// read returns the lines that were written since the last time.
func (b *book) read(t *testing.T) (all []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := json.NewDecoder(&b.Buffer); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

// pass lets a second pass, and with it what is written at its end.
func pass() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// A flood of one kind is written in part, and what was held back is told when the second is over, whether another line
// comes or not.
func TestOneKindIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger()).With("source", "billing")
		for range 2000 {
			l.Warn("rejected", "reason", "mismatch", "path", "/in/billing")
		}
		if got := b.read(t); len(got) != PerKind || got[0]["path"] != "/in/billing" || got[0]["source"] != "billing" {
			t.Errorf("%d lines, the first %v", len(got), got[0])
		}
		pass()
		got := b.read(t)
		if len(got) != 1 || got[0]["suppressed"] != 2000.0-PerKind || got[0]["msg"] != "rejected" || got[0]["level"] != "WARN" ||
			got[0]["source"] != "billing" || got[0]["reason"] != "mismatch" || got[0]["path"] != nil {
			t.Errorf("at the end of the second: %v", got)
		}
		l.Warn("rejected", "reason", "mismatch")
		pass()
		if got := b.read(t); len(got) != 1 || got[0]["suppressed"] != nil {
			t.Errorf("after the flood: %v", got)
		}
		if n := Suppressed(l); n != 2000-PerKind {
			t.Errorf("%d lines were held back in all, want %d", n, 2000-PerKind)
		}
	})
}

// Whoever asks for the counts before the second is over does not make them come more often.
func TestCountsComeOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		for range 5 * (PerKind + 1) { // five times: a flood, and a count that is asked for
			l.Warn("rejected")
			Flush(l)
			time.Sleep(20 * time.Millisecond)
		}
		b.read(t)
		const ticks = 100
		for range 3 * ticks {
			l.Warn("rejected")
			time.Sleep(time.Second / ticks)
		}
		if got := len(b.read(t)); got > 4*(PerKind+1) {
			t.Errorf("%d lines in three seconds, want at most %d in each", got, PerKind+1)
		}
		pass()
	})
}

// A flood hides no other kind: neither another source, nor another reason, nor another level.
func TestKindsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		flood := func() { l.Warn("rejected", "source", "billing", "reason", "mismatch", "status", 401) }
		for range 2000 {
			flood()
		}
		b.read(t)
		for name, line := range map[string]func(){
			"source":  func() { l.Warn("rejected", "source", "shop", "reason", "mismatch", "status", 401) },
			"reason":  func() { l.Warn("rejected", "source", "billing", "reason", "store", "status", 401) },
			"status":  func() { l.Warn("rejected", "source", "billing", "reason", "mismatch", "status", 503) },
			"level":   func() { l.Error("rejected", "source", "billing", "reason", "mismatch", "status", 401) },
			"message": func() { l.Warn("refused", "source", "billing", "reason", "mismatch", "status", 401) },
			"logger":  func() { l.With("source", "news").Warn("rejected", "reason", "mismatch", "status", 401) },
		} {
			flood()
			if line(); len(b.read(t)) != 1 {
				t.Errorf("another %s is hidden", name)
			}
		}
	})
}

// Floods of many kinds are bounded together, and so is what tells their size. None of them hides a kind that was
// silent for a while.
func TestAllKindsAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		const kinds, seconds = 200, 30
		total := 0
		for s := range seconds {
			for i := range 50 * kinds {
				l.Warn("rejected", "source", fmt.Sprint(i%kinds))
			}
			n := len(b.read(t))
			if s == seconds-1 {
				if l.Error("the store fails"); len(b.read(t)) != 1 {
					t.Error("a kind that was silent is hidden")
				}
			}
			pass()
			n += len(b.read(t))
			if most := PerLog + kinds + MaxCounts + 2; n > most {
				t.Errorf("%d lines in a second, want at most %d", n, most)
			}
			total += n
		}
		if most := seconds*(PerLog+MaxCounts+1) + kinds*(seconds/int(Rest/time.Second)) + 1; total > most {
			t.Errorf("%d lines in %d s, want at most %d", total, seconds, most)
		}
	})
}

// Kinds that strangers have made up after all take up neither memory nor lines without end.
func TestKindsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		h := l.Handler().(*handler)
		for i := range 4 * MaxKinds {
			l.Warn("rejected", "source", fmt.Sprint(i))
		}
		if n := len(h.log.kinds); n > MaxKinds+1 {
			t.Errorf("%d kinds are remembered", n)
		}
		if n := len(b.read(t)); n > PerLog+MaxKinds+1 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(Rest)
		synctest.Wait()
		b.read(t)
		if l.Warn("rejected", "source", "another"); len(b.read(t)) != 1 || len(h.log.kinds) > MaxKinds+1 {
			t.Error("a kind that comes after the flood is not written")
		}
	})
}

// Long values are cut, at the border of a character: whatever wrote them.
func TestValuesAreCut(t *testing.T) {
	var b book
	long := strings.Repeat("é", 1<<20)
	type odd struct{ text string }
	l := Bound(b.logger()).With("agent", long)
	l.Warn("rejected", "path", long, "error", errors.New(long), "odd", odd{long}, slog.Group("g", "inner", long), "stack", long,
		"small", errors.New("small"), "n", 7)
	line := b.String()
	if len(line) > 6*(MaxValue+64)+MaxStack {
		t.Errorf("a line of %d bytes", len(line))
	}
	got := b.read(t)[0]
	if want := strings.Repeat("é", MaxValue/2) + "…"; got["path"] != want || got["error"] != want || got["agent"] != want || got["g"].(map[string]any)["inner"] != want {
		t.Errorf("written: %s", line)
	}
	if got["small"] != "small" || got["n"] != 7.0 {
		t.Errorf("small values are changed: %s", line)
	}
	if s := Cut("aé", 2); s != "a…" {
		t.Errorf("cut to %q", s)
	}
}

// What package net/http says is one kind, whatever addresses are in it.
func TestStdIsOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		std := Std(b.logger(), slog.LevelWarn, "a connection failed", "listener", "listen")
		for i := range 2000 {
			std.Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", i)
		}
		if got := b.read(t); len(got) != PerKind || got[0]["msg"] != "a connection failed" || got[0]["error"] != "http: TLS handshake error from 192.0.2.1:0: EOF" {
			t.Errorf("%d lines, the first %v", len(got), got[0])
		}
		pass()
		b.read(t)
		std.Print("http: panic serving 192.0.2.1:1: boom\ngoroutine 1 [running]:\nmain.main()")
		if got := b.read(t); len(got) != 1 || got[0]["stack"] != "goroutine 1 [running]:\nmain.main()" {
			t.Errorf("%v", got)
		}
	})
}

// Bound is done once: loggers that share a log share its bounds, and Unbound has none.
func TestBoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		if Bound(l) != l || Bound(l.With("a", 1)).Handler().(*handler).log != l.Handler().(*handler).log {
			t.Error("bounded twice")
		}
		for range 100 {
			Unbound(l).Info("event")
		}
		if n := len(b.read(t)); n != 100 {
			t.Errorf("%d lines without bounds", n)
		}
		plain := b.logger()
		if Unbound(plain) != plain {
			t.Error("a logger without bounds is changed")
		}
		Flush(plain)
	})
}

// A kind with a bound of its own is not in the way of others, nor they in its.
func TestOwnBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(b.logger())
		k, now, n := Of(l.With("source", "billing"), slog.LevelInfo, "event", 300), time.Now(), 0
		for range 1000 {
			if k.Allow(now) {
				n++
			}
		}
		if n != 300 {
			t.Errorf("%d lines, want 300", n)
		}
		for range 30 {
			l.Warn("rejected")
		}
		if got := b.read(t); len(got) != PerKind {
			t.Errorf("%d lines of another kind", len(got))
		}
		Flush(l)
		if got := b.read(t); len(got) != 2 || got[0]["suppressed"] != 700.0 || got[0]["source"] != "billing" || got[1]["suppressed"] != 20.0 {
			t.Errorf("told: %v", got)
		}
		pass()
		if got := b.read(t); len(got) != 0 {
			t.Errorf("told again: %v", got)
		}
	})
}

// fainting panics, as the logger of a test that has ended does.
type fainting struct{ slog.Handler }

func (f fainting) Handle(_ context.Context, r slog.Record) (err error) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "suppressed" {
			panic("the test has ended")
		}
		return true
	})
	return nil
}

func TestCountsReachNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b book
		l := Bound(slog.New(fainting{b.logger().Handler()}))
		for range 2 * PerKind {
			l.Warn("rejected")
		}
		pass()
	})
}
