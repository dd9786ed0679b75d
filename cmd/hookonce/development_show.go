package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// show writes a line for everything that happens to an event. Nothing waits for it: where nobody reads its
// lines, some are left out.
type show struct {
	began time.Time
	lines chan string
	ended chan struct{}

	mu      sync.Mutex
	known   map[int64]bool // events whose line "received" is written
	omitted int
	closed  bool
}

const (
	shownAhead = 1000  // lines that may wait to be written
	shownKnown = 10000 // events that are remembered; whoever is forgotten may be shown as received twice
)

func newShow(out io.Writer) *show {
	s := &show{began: time.Now(), lines: make(chan string, shownAhead), ended: make(chan struct{}), known: map[int64]bool{}}
	go func() {
		defer close(s.ended)
		for line := range s.lines {
			_, _ = io.WriteString(out, line) // the gateway goes on when nobody looks any more
		}
	}()
	return s
}

// lastWords is how long a stop waits for whoever reads.
const lastWords = time.Second

// close writes what is left, as far as somebody reads it. What happens later is not shown.
func (s *show) close() {
	s.mu.Lock()
	s.closed = true
	close(s.lines)
	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-time.After(lastWords):
	}
}

// line writes what happened to an event. The lock is held.
func (s *show) line(what, kind, key, detail string) {
	if s.closed {
		return
	}
	text := fmt.Sprintf("%s  %-10s %s", time.Now().Format(time.TimeOnly), what, clean(kind))
	for _, part := range []string{key, detail} {
		if part != "" {
			text = strings.TrimRight(text, " ") + "  " + clean(part)
		}
	}
	if s.omitted > 0 {
		text = fmt.Sprintf("(%d lines were left out)\n%s", s.omitted, text)
	}
	select {
	case s.lines <- text + "\n":
		s.omitted = 0
	default:
		s.omitted++
	}
}

// received writes the first line of an event, unless it stands there: a delivery may be faster than the answer
// to the sender. The lock is held.
func (s *show) received(id int64, kind, key, detail string) {
	if s.known[id] {
		return
	}
	if len(s.known) >= shownKnown {
		clear(s.known)
	}
	s.known[id] = true
	s.line("received", kind, cmp.Or(key, "(no key: its copies cannot be recognised)"), detail)
}

// Stored implements [ingest.Watcher].
func (s *show) Stored(_ string, e *hookonce.Event, r journal.Result, routed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	detail := ""
	if !routed {
		detail = "no route wanted it: stored, delivered nowhere"
	}
	switch r.Status {
	case journal.Accepted, journal.Unkeyed:
		s.received(r.ID, e.Type, e.Key, detail)
	case journal.Duplicate:
		detail = "came before and is not delivered again"
		if r.Redriven {
			detail = "came before, had failed, and is delivered again"
		}
		s.line("duplicate", e.Type, e.Key, detail)
	case journal.Conflict:
		s.line("conflict", e.Type, e.Key, "came before with other content; the first stands")
	default:
		s.line(string(r.Status), e.Type, e.Key, "")
	}
}

// Greeted implements [ingest.Watcher].
func (s *show) Greeted(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line("handshake", "answered", "", "")
}

// Refused implements [ingest.Watcher].
func (s *show) Refused(r ingest.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line("rejected", strconv.Itoa(r.Status)+" "+r.Reason, r.Path+" from "+r.From, r.Detail)
}

// Attempted implements [deliver.Watcher].
func (s *show) Attempted(w *journal.Work, o journal.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Token == 1 && !w.ReceivedAt.Before(s.began) {
		s.received(w.EventID, w.Type, w.Key, "")
	}
	took := o.Duration.Round(time.Millisecond).String()
	switch o.State {
	case journal.Done:
		s.line("delivered", w.Type, w.Key, fmt.Sprintf("%d in %s", o.Status, took))
	case journal.Failed:
		s.line("failed", w.Type, w.Key, fmt.Sprintf("%s; tried again in %s", o.Error, inSeconds(time.Until(o.Due))))
	case journal.Dead:
		s.line("given up", w.Type, w.Key, o.Error+"; not tried again unless its sender sends it again, or with hookonce events replay")
	}
}

// inSeconds writes a wait for people.
func inSeconds(d time.Duration) string {
	d = max(d.Round(100*time.Millisecond), 100*time.Millisecond)
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
