package ingest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// TestReadingIsBounded: bodies that nobody has verified yet take no more memory than is set aside, and those of one address
// no more than a half of it, counted by what has arrived. What is beyond is asked to come again, where no other can be given
// up for it, and the memory is free when its request has ended.
func TestReadingIsBounded(t *testing.T) {
	const maxBody, maxReading = 512 << 10, 2 << 20
	small := `{"id":"small"}`
	large := `{"id":"large","pad":"` + strings.Repeat("x", maxBody/2) + `"}`
	for _, c := range []struct {
		name    string
		length  int64
		arrived int    // of each body, before it stalls
		fit     int    // bodies that may stall at once
		refused string // what finds no room then
	}{
		{"small", 16 << 10, 2, maxReading / 2 / (4 << 10), small},
		{"large, little sent", maxBody, 2, maxReading / 2 / (4 << 10), small},
		{"large", maxBody, maxBody * 3 / 4, 1, large},
		{"of unknown length", -1, maxBody * 3 / 4, 1, large},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) {
				o.MaxReading, o.Sources = maxReading, o.Sources[:1]
				o.Sources[0].MaxBody = maxBody
			})
			for range 2 * c.fit { // nothing is held for them
				s := stallIn(t, g, c.length, 0)
				defer s.breakOff()
			}
			var stalled []*stall
			for range c.fit {
				stalled = append(stalled, stallIn(t, g, c.length, c.arrived))
			}
			w := g.send("billing", c.refused)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "crowded")
			if w.Header().Get("Connection") != "close" {
				t.Error("the rest of the body is waited for")
			}
			if w := sendFrom(g, "billing", c.refused, "198.51.100.7:4000"); w.Code != http.StatusOK {
				t.Errorf("another address was answered %d %s", w.Code, w.Body)
			}
			for _, s := range stalled {
				w := s.breakOff()
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusBadRequest, "truncated")
				if w.Header().Get("Connection") != "close" {
					t.Error("what follows a body that was cut off would be read as a request")
				}
			}
			for range 8 { // together they are more than fits
				if w := g.send("billing", large); w.Code != http.StatusOK {
					t.Fatalf("answered %d %s after the others had ended", w.Code, w.Body)
				}
			}
		})
	}
}

// sendFrom is send from another address.
func sendFrom(g *gate, source, body, from string) *httptest.ResponseRecorder {
	r := request(source, body)
	r.RemoteAddr = from
	return serve(g, r)
}

// An address that holds a third gets no more, and other addresses and sources do. In both ways of taking much: many small
// bodies, and few large ones.
func TestReadingIsShared(t *testing.T) {
	const maxReading = 1 << 20
	for _, c := range []struct {
		name         string
		length, read int64
		fit          int // bodies of one address
	}{
		{"small", 16 << 10, 2, maxReading / 3 / (4 << 10)},
		{"large", 128 << 10, 100 << 10, 2}, // the third would hold more, and needs that while it grows
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) {
				o.MaxReading = maxReading
				o.Sources[0].MaxBody, o.Sources[1].MaxBody = 128<<10, 128<<10
			})
			for range c.fit {
				s := stallIn(t, g, c.length, int(c.read))
				defer s.breakOff()
			}
			noisy := `{"id":"noisy","pad":"` + strings.Repeat("x", int(c.length)-23) + `"}`
			w := g.send("billing", noisy)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "crowded")
			for _, body := range []string{`{"id":"small"}`, `{"id":"large","pad":"` + strings.Repeat("x", 40<<10) + `"}`} {
				if w := g.send("orders", body); w.Code != http.StatusOK {
					t.Errorf("the other source was answered %d %s", w.Code, w.Body)
				}
				if w := sendFrom(g, "billing", body, "198.51.100.7:4000"); w.Code != http.StatusOK {
					t.Errorf("the other address was answered %d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// A source that fills the journal's queue leaves room for the others, in events and in bytes.
func TestQueueIsShared(t *testing.T) {
	for name, bound := range map[string]func(*ingest.Options){
		"events": func(o *ingest.Options) { o.MaxQueued = 8 },
		"bytes":  func(o *ingest.Options) { o.MaxQueuedBytes, o.MaxQueued = 8<<10, 40 },
	} {
		t.Run(name, func(t *testing.T) {
			stuck := newStuck()
			g := newGate(t, func(o *ingest.Options) {
				bound(o)
				o.Journal = stuck
			})
			body := func(id string) string { return `{"id":"` + id + `","pad":"` + strings.Repeat("x", 660) + `"}` } // 1 KiB with its headers and facts
			answers := make(chan int, 6)
			send := func(source, id string) {
				go func() { answers <- g.send(source, body(id)).Code }()
				stuck.await(t, answers)
			}
			for i := range 4 {
				send("billing", string(rune('a'+i)))
			}
			w := g.send("billing", body("e"))
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "queue_full")
			for i := range 2 {
				send("orders", string(rune('a'+i)))
			}
			for range 50 { // refusals take up nothing
				w = g.send("billing", body("e"))
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "queue_full")
			}
			close(stuck.release)
			for range 6 {
				if code := <-answers; code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			}
			if w := g.send("billing", body("e")); w.Code != http.StatusOK {
				t.Errorf("answered %d %s when the others had ended", w.Code, w.Body)
			}
		})
	}
}

// Batches that are larger than the queue go through it part by part, and what is no batch finds room beside them.
func TestBatchesLargerThanTheQueue(t *testing.T) {
	stuck := newStuck()
	g := newGate(t, func(o *ingest.Options) { o.MaxQueued, o.Journal = 8, stuck })
	answers := make(chan int, 4)
	send := func(source, body string) {
		go func() { answers <- g.send(source, body).Code }()
		stuck.await(t, answers)
	}
	send("billing", `[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"},{"id":"e"},{"id":"f"},{"id":"g"},{"id":"h"},{"id":"i"}]`)
	send("orders", `{"id":"z"}`)
	send("billing", `{"id":"z"}`)
	go func() { answers <- g.send("orders", `[{"id":"a"},{"id":"b"},{"id":"c"}]`).Code }()
	close(stuck.release)
	for range 4 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
	}
}

// stuck is a journal that accepts everything when it is told to.
type stuck struct{ waiting, release chan struct{} }

func newStuck() *stuck { return &stuck{make(chan struct{}, 100), make(chan struct{})} }

// await waits until a request has come to the journal, unless it was answered before that.
func (s *stuck) await(t *testing.T, answers <-chan int) {
	t.Helper()
	select {
	case <-s.waiting:
	case code := <-answers:
		t.Fatalf("answered %d before it came to the journal", code)
	}
}

func (s *stuck) Accept(_ context.Context, entries []*journal.Event) ([]journal.Result, error) {
	s.waiting <- struct{}{}
	<-s.release
	results := make([]journal.Result, len(entries))
	for i := range results {
		results[i].Status = journal.Accepted
	}
	return results, nil
}

// A body that the source allows can be read however little memory is set aside.
func TestOneBodyAlwaysFits(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.MaxReading, o.Sources[0].MaxBody = 1, 1<<20 })
	body := `{"id":"a","pad":"` + strings.Repeat("x", 1<<20-19) + `"}`
	r := request("billing", body)
	r.ContentLength = -1
	if w := serve(g, r); w.Code != http.StatusOK {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// stall is a request whose body stops in the middle.
type stall struct {
	body   *io.PipeWriter
	answer chan *httptest.ResponseRecorder
}

// stallIn sends the first bytes of a body of the announced length, and returns when they are read. The first of all is read
// before anything is held.
func stallIn(t *testing.T, g *gate, length int64, arrived int) *stall {
	t.Helper()
	body, sender := io.Pipe()
	s := &stall{sender, make(chan *httptest.ResponseRecorder, 1)}
	go func() {
		r := httptest.NewRequest(http.MethodPost, ingest.PathPrefix+"billing", body)
		r.ContentLength = length
		w := serve(g, r)
		s.answer <- w
		body.Close()
	}()
	if arrived == 0 {
		return s
	}
	if _, err := sender.Write(make([]byte, arrived)); err != nil {
		t.Fatalf("the body was refused: %s", (<-s.answer).Body)
	}
	return s
}

// breakOff ends the body as a server does whose client is gone, and returns the answer.
func (s *stall) breakOff() *httptest.ResponseRecorder {
	s.body.CloseWithError(io.ErrUnexpectedEOF)
	return <-s.answer
}

// kept is a journal that keeps what it is given.
type kept struct{ entries []*journal.Event }

func (k *kept) Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	k.entries = entries
	return instant{}.Accept(ctx, entries)
}

// The events of a batch have the headers of their request once between them, however many they are, and each has its
// own facts besides.
func TestHeadersOfABatchAreThereOnce(t *testing.T) {
	k := &kept{}
	g := newGate(t, func(o *ingest.Options) { o.Journal = k })
	if w := g.send("billing", `[{"id":"evt_1","rank":1},{"id":"evt_2","rank":2},{"id":"evt_3","rank":3}]`); w.Code != http.StatusOK {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	first := k.entries[0].Header
	for i, e := range k.entries {
		if len(first) == 0 || len(e.Header) != len(first) || &e.Header[0] != &first[0] {
			t.Errorf("%s has a copy of the headers", e.Key)
		}
		if own := fmt.Sprintf("Hookonce-Rank: version:%d\r\n", i+1); !strings.Contains(string(e.Lines()), own) || !strings.HasPrefix(string(e.Lines()), string(first)) {
			t.Errorf("%s is stored with %q", e.Key, e.Lines())
		}
		if e.Size() != int64(len(e.Lines())+len(e.Body)) {
			t.Errorf("%s counts %d bytes", e.Key, e.Size())
		}
	}
}
