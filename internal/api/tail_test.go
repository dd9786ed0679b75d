package api_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tail"
)

// deadlines notes those that a handler sets.
type deadlines struct {
	http.ResponseWriter
	read, write chan time.Time
}

func (d *deadlines) Unwrap() http.ResponseWriter         { return d.ResponseWriter }
func (d *deadlines) SetReadDeadline(at time.Time) error  { return note(d.read, at) }
func (d *deadlines) SetWriteDeadline(at time.Time) error { return note(d.write, at) }

func note(c chan time.Time, at time.Time) error {
	select {
	case c <- at:
	default:
	}
	return nil
}

// tailed returns the lines of a tail. That requests end is lifted for reading, and each message has a deadline of its own.
func tailed(t *testing.T, r *rig, query, after string) *bufio.Scanner {
	t.Helper()
	d := deadlines{read: make(chan time.Time, 1), write: make(chan time.Time, 1)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		d.ResponseWriter = w
		r.handler.ServeHTTP(&d, req)
	}))
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/tail"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close(); s.Close() })
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", res.StatusCode, kind)
	}
	if read, write := <-d.read, <-d.write; !read.IsZero() || write.IsZero() {
		t.Errorf("requests end at %v, and answers at %v", read, write)
	}
	return bufio.NewScanner(res.Body)
}

// next returns the next line that begins with a word.
func next(t *testing.T, lines *bufio.Scanner, word string) string {
	t.Helper()
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), word+": "); ok {
			return rest
		}
	}
	t.Fatalf("no %s came: %v", word, lines.Err())
	return ""
}

// A tail tells what came and what comes, and goes on behind the id that it gave.
func TestTail(t *testing.T) {
	r := newRig(t)
	r.accept("early", journal.Dead)
	lines := tailed(t, r, "?since=2026-11-21T11:00:00Z&source=billing&type=invoice.*", "")
	id, kind, data := next(t, lines, "id"), next(t, lines, "event"), next(t, lines, "data")
	if kind != "event" || !strings.Contains(data, `"key":"early"`) || !strings.Contains(data, `"state":"dead"`) || strings.Contains(data, "\n") {
		t.Errorf("%s %s", kind, data)
	}
	r.accept("live", journal.Pending)
	if kind, data := next(t, lines, "event"), next(t, lines, "data"); kind != "event" || !strings.Contains(data, `"key":"live"`) {
		t.Errorf("%s %s", kind, data)
	}
	again := tailed(t, r, "", id)
	if data := next(t, again, "data"); !strings.Contains(data, `"key":"live"`) {
		t.Errorf("it went on with %s", data)
	}
}

// What cannot be told is refused in words.
func TestTailRefused(t *testing.T) {
	r := newRig(t)
	for _, query := range []string{"?state=late", "?type=%00", "?since=yesterday", "?key=evt"} {
		r.expect(request("GET", "/api/v1/tail"+query, nil), 422)
	}
	cut := request("GET", "/api/v1/tail", nil)
	cut.Header.Set("Last-Event-ID", "nonsense")
	r.expect(cut, 422)
	for range tail.Max {
		if _, err := r.feed.Follow(tail.Filter{}, tail.From{}); err != nil {
			t.Fatal(err)
		}
	}
	r.expect(request("GET", "/api/v1/tail", nil), 503)
	r.feed.Close()
	r.expect(request("GET", "/api/v1/tail", nil), 503)
}
