package deliver_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// stream is a body that ends only when its request does. It counts what was read of it.
type stream struct {
	ctx    context.Context
	every  time.Duration // between two pieces
	piece  int
	read   *int
	closed *bool
}

func (s stream) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.every):
	}
	n := min(len(p), s.piece)
	copy(p, bytes.Repeat([]byte("x"), n))
	*s.read += n
	return n, nil
}

func (s stream) Close() error {
	*s.closed = true
	return nil
}

// The first bytes of an answer are kept. However long it is and however slowly it comes, little of it is
// read, and the status decides soon.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    int
		body    func(ctx context.Context, read *int, closed *bool) io.ReadCloser
		kept    string
		took    time.Duration // until the outcome
		maxRead int
	}{
		{name: "none", code: 200, body: func(context.Context, *int, *bool) io.ReadCloser { return http.NoBody }},
		{name: "short", code: 500, kept: "no such account",
			body: func(context.Context, *int, *bool) io.ReadCloser {
				return io.NopCloser(strings.NewReader("no such account"))
			}},
		{name: "long", code: 200, kept: strings.Repeat("y", 512),
			body: func(context.Context, *int, *bool) io.ReadCloser {
				return io.NopCloser(strings.NewReader(strings.Repeat("y", 1000)))
			}},
		{name: "endless", code: 200, kept: strings.Repeat("x", 512), maxRead: 20 << 10,
			body: func(ctx context.Context, read *int, closed *bool) io.ReadCloser {
				return stream{ctx, 0, 1000, read, closed}
			}},
		{name: "dripping", code: 200, kept: "xxxx", took: 500 * time.Millisecond, maxRead: 5,
			body: func(ctx context.Context, read *int, closed *bool) io.ReadCloser {
				return stream{ctx, 110 * time.Millisecond, 1, read, closed}
			}},
		{name: "dripping failure", code: 500, kept: "xxxx", took: 500 * time.Millisecond, maxRead: 5,
			body: func(ctx context.Context, read *int, closed *bool) io.ReadCloser {
				return stream{ctx, 110 * time.Millisecond, 1, read, closed}
			}},
		{name: "silent", code: 200, took: 500 * time.Millisecond,
			body: func(ctx context.Context, read *int, closed *bool) io.ReadCloser {
				return stream{ctx, time.Hour, 1, read, closed}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read, closed := 0, false
				s := newStandIn(t, nowhere, func(r *http.Request) (*http.Response, error) {
					answer := status(c.code)
					answer.Body = c.body(r.Context(), &read, &closed)
					return answer, nil
				})
				s.bring(piece(1))
				<-time.After(c.took)
				synctest.Wait()
				told := s.told()
				if len(told) != 1 || told[0].Status != c.code || string(told[0].Excerpt) != c.kept {
					t.Fatalf("after %v: %+v, want the answer %q", c.took, told, c.kept)
				}
				if (told[0].State == journal.Done) != (c.code == 200) || told[0].Duration != 0 {
					t.Errorf("outcome %+v", told[0])
				}
				<-time.After(time.Second)
				if read > c.maxRead || c.maxRead > 0 && !closed {
					t.Errorf("%d bytes were read, closed: %t", read, closed)
				}
			})
		})
	}
}
