package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestYoungIsNotPassed: what was too young when it was looked up is not settled because the run went on until it was old.
func TestYoungIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			w.Header().Set("Retry-After", "840")
			w.WriteHeader([]int{429, 202}[n-1])
		})})
		young := time.Now().Add(-50 * time.Minute).Truncate(time.Second)
		w.server.Add(reconciletest.Entry{ID: "evt_old", At: young.Add(-time.Hour)}, reconciletest.Entry{ID: "evt_young", At: young})
		w.opts.Redeliver, w.opts.Lag = true, time.Hour
		r := w.mustRun()
		if r.Redelivered != 1 || r.Young != 1 || !r.Settled.Equal(young) {
			t.Errorf("settled at %v, and at %v there is one that was not looked at again: %+v", r.Settled, young, r)
		}
	})
}

// TestMadeMeanwhileIsNotPassed: nothing is settled that the sender made after it was asked for its list, however long the run lasts
// and however far our clock is ahead. A time that somebody asked for is by no clock.
func TestMadeMeanwhileIsNotPassed(t *testing.T) {
	const ahead = 5 * time.Minute
	for name, until := range map[string]time.Duration{"until now": 0, "until a time": 2 * time.Minute} { // ago
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Clock: time.Now, Intercept: resends(func(w http.ResponseWriter, n int) {
				w.Header().Set("Retry-After", "840")
				w.WriteHeader([]int{429, 202}[n-1])
			})})
			asked := time.Now()
			w.server.Add(reconciletest.Entry{ID: "evt_old", At: asked.Add(-time.Hour)})
			w.opts.Redeliver, w.opts.Lag = true, -1
			w.opts.Now = func() time.Time { return time.Now().Add(ahead) }
			if until > 0 {
				w.opts.Until = asked.Add(-until)
			}
			r := w.mustRun()
			if r.Redelivered != 1 || time.Since(asked) < 2*ahead || !r.Settled.Equal(asked.Add(-until)) {
				t.Errorf("settled until %v, and the list is of %v: %+v", r.Settled, asked, r)
			}
		})
	}
}

// TestOldestYoungIsNotPassed: of several that were too young when they were looked up the oldest is not settled, whichever was looked
// up first.
func TestOldestYoungIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Size: 10_000, Intercept: resends(func(w http.ResponseWriter, n int) {
			w.Header().Set("Retry-After", "840")
			w.WriteHeader([]int{429, 202}[n-1])
		})})
		oldest := time.Now().Add(-55 * time.Minute).Truncate(time.Second)
		w.server.Add(reconciletest.Entry{ID: "evt_old", At: oldest.Add(-time.Hour)}, reconciletest.Entry{ID: "evt_young", At: oldest})
		for i := range 20_000 { // as many as are looked up together, before the page that has the oldest
			w.server.Add(reconciletest.Entry{ID: fmt.Sprint("evt_", i), At: oldest.Add(5 * time.Minute)})
		}
		w.opts.Redeliver, w.opts.Lag = true, time.Hour
		r := w.mustRun()
		if r.Redelivered != 1 || r.Young != 20_001 || !r.Settled.Equal(oldest) {
			t.Errorf("settled at %v, and at %v there is one that was not looked at again: %d are young, %d were sent again", r.Settled, oldest, r.Young, r.Redelivered)
		}
	})
}

// TestForgotten: an event that is not on record and so old that its key may be forgotten is never stored a second time, also if
// it grows so old while the run lasts.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: answerFirst(1, 429, "Retry-After", "840")})
		now := time.Now().Truncate(time.Second)
		for id, age := range map[string]time.Duration{
			"evt_old":     30 * time.Hour,
			"evt_ahead":   24*time.Hour - 2*time.Minute, // of a sender whose clock is ahead
			"evt_grows":   24*time.Hour - 20*time.Minute,
			"evt_known":   24*time.Hour - 20*time.Minute,
			"evt_missing": 24*time.Hour - 30*time.Minute,
		} {
			w.server.Add(reconciletest.Entry{ID: id, At: now.Add(-age)})
		}
		w.ledger.put("evt_known")
		w.opts.Remembered, w.opts.Ingest = 24*time.Hour, w.ledger.ingest
		r := w.mustRun()
		if r.Listed != 5 || r.Forgotten != 3 || r.Stored != 1 || r.Known != 1 || r.Events[0].Key != "evt_missing" {
			t.Errorf("%+v", r)
		}
	})
}

// TestPagesAreNotKept: of a list of which something is missing on every page, what is missing stays in memory, and not the pages.
func TestPagesAreNotKept(t *testing.T) {
	const pages, size = 64, 1 << 20
	for name, store := range map[string]bool{"told": false, "stored": true} {
		bubble(t, name, func(t *testing.T) {
			pad, n := strings.Repeat("x", size), 0
			at := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
			w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Intercept: func(w http.ResponseWriter, _ *http.Request) bool {
				n++
				next := ""
				if n < pages {
					next = fmt.Sprint("page_", n)
				}
				_, _ = fmt.Fprintf(w, `{"pad": %q, "next": %q, "data": [{"id": "entry_%d", "at": %q, "headers": {"X-Acme-Id": "key_%d", "X-More": "more_%d"}, "event": {"type": "order.paid"}}]}`, pad, next, n, at, n, n)
				return true
			}}, func(s *spec.Spec) {
				s.Event.Key = [][]spec.Value{{"header:X-Acme-Id"}}
				s.Reconcile.List.Event.Headers = "$.headers"
			})
			if store {
				w.opts.Ingest = w.ledger.ingest
			}
			before, after := heap(), uint64(0)
			w.opts.Progress = func(p reconcile.Progress) {
				if p.Pages == pages && after == 0 {
					after = heap()
				}
			}
			r := w.mustRun()
			if r.Missing != pages || after > before+pages*size/4 {
				t.Errorf("%d missing; %d MiB were kept of %d", r.Missing, (after-before)>>20, pages*size>>20)
			}
			if end := heap(); end > before+pages*size/4 {
				t.Errorf("the report keeps %d MiB", (end-before)>>20)
			}
			runtime.KeepAlive(r)
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestErrorsQuoteNothing: an answer that is no HTTP, or breaks off, may have the token in it, and is in no error.
func TestErrorsQuoteNothing(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"no HTTP":            {"Authorization: Bearer " + reconciletest.Token + "\r\n\r\n", "listing events: the answer is no HTTP, or broke off"},
		"no status":          {"HTTP/1.1 " + reconciletest.Token + " no\r\n\r\n", "listing events: the answer is no HTTP, or broke off"},
		"no header":          {"HTTP/1.1 200 OK\r\n" + reconciletest.Token + "\r\n\r\n", "listing events: the answer is no HTTP, or broke off"},
		"leads to no URL":    {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: https://%zz/" + reconciletest.Token + "\r\n\r\n", "it leads elsewhere, and the token is not sent there"},
		"leads nowhere":      {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "it leads elsewhere, and the token is not sent there"},
		"a trailer":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\n" + reconciletest.Token + "\r\n\r\n", "listing events: the answer ended early"},
		"ends in the middle": {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "listing events: the answer ended early"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, c.answer)
			}))
			defer api.Close()
			w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) { s.Reconcile.Servers[0].URL = spec.Pattern(api.URL) })
			transport := &http.Transport{DisableKeepAlives: true}
			defer transport.CloseIdleConnections()
			w.opts.Transport = transport
			w.opts.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
			_, err := w.run()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err, w.log.String()), reconciletest.Token) {
				t.Error("the token is told")
			}
		})
	}
}

// TestPagesAreBounded ends a list whose pages are small and go on for ever.
func TestPagesAreBounded(t *testing.T) {
	testskip.Race(t)
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			next := ""
			if n++; n <= 20_000 { // after which nobody asks
				next = fmt.Sprint(n)
			}
			_, _ = fmt.Fprintf(w, `{"data": [{"id": "entry_%d", "ok": true}], "next": %q}`, n, next)
			return true
		}})
		r, err := w.run()
		if !errors.Is(err, reconcile.ErrLies) || !strings.Contains(err.Error(), "it has more than 20000 pages") || r.Pages != 20_000 || !r.Settled.Equal(r.Since) {
			t.Errorf("%v after %d pages", err, r.Pages)
		}
	})
}

// TestEntriesAreBounded ends a list that has more entries than can be kept apart.
func TestEntriesAreBounded(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	if testing.Short() {
		t.Skip("two million entries")
	}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			n++
			page := []byte(`{"data": [`)
			for i := range 10_000 {
				page = fmt.Appendf(page, `{"id": "%d_%d", "ok": true},`, n, i)
			}
			_, _ = fmt.Fprintf(w, `%s], "next": "%d"}`, page[:len(page)-1], n)
			return true
		}})
		r, err := w.run()
		if !errors.Is(err, reconcile.ErrLies) || !strings.Contains(err.Error(), "it has more than 2000000 entries") || r.Pages != 200 || !r.Settled.Equal(r.Since) {
			t.Errorf("%v after %d pages", err, r.Pages)
		}
	})
}
