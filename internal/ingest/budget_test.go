package ingest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ingest"
)

// TestReadingIsBounded: bodies that nobody has verified yet take no more memory than is set aside.
// What is beyond is asked to come again, and the memory is free when its request has ended.
func TestReadingIsBounded(t *testing.T) {
	const maxBody, maxReading = 512 << 10, 1 << 20
	small := `{"id":"small"}`
	large := `{"id":"large","pad":"` + strings.Repeat("x", maxBody/2) + `"}`
	for _, c := range []struct {
		name    string
		length  int64
		arrived int    // of each body, before it stalls
		fit     int    // bodies that may stall at once
		refused string // what finds no room then
	}{
		{"small", 16 << 10, 1, maxReading / (16 << 10), small},
		{"large, little sent", maxBody, 1, maxReading / (16 << 10), small},
		{"large", maxBody, maxBody * 3 / 4, 1, large},
		{"of unknown length", -1, maxBody * 3 / 4, 1, large},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) {
				o.MaxReading = maxReading
				o.Sources[0].MaxBody, o.Sources[1].MaxBody = maxBody, maxBody
			})
			var stalled []*stall
			for range c.fit {
				stalled = append(stalled, stallIn(t, g, c.length, c.arrived))
			}
			w := g.send("orders", c.refused)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "queue_full")
			if w.Header().Get("Connection") != "close" {
				t.Error("the rest of the body is waited for")
			}
			for _, s := range stalled {
				w := s.breakOff()
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusBadRequest, "truncated")
			}
			for range 8 { // together they are more than fits
				if w := g.send("orders", large); w.Code != http.StatusOK {
					t.Fatalf("answered %d %s after the others had ended", w.Code, w.Body)
				}
			}
		})
	}
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

// stallIn sends the first bytes of a body of the announced length, and returns when they are read.
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
