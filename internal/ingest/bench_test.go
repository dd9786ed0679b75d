package ingest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// instant is a journal that accepts everything at once.
type instant struct{}

func (instant) Accept(_ context.Context, entries []*journal.Event) ([]journal.Result, error) {
	results := make([]journal.Result, len(entries))
	for i := range results {
		results[i].Status = journal.Accepted
	}
	return results, nil
}

// trusting is a provider that costs nothing.
type trusting struct{ testProvider }

func (trusting) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	return &hookonce.Verified{Events: []hookonce.Event{{Key: "evt_1", Type: "paid", KeySigned: true, Body: r.Body}}}, nil
}

// verifyOnly is the handler that the ceiling is measured with: it reads, opens and answers.
func verifyOnly(p hookonce.Provider) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			_, err = p.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body})
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusOK)
	}
}

// BenchmarkHandler compares what a request costs in the handler alone, without a connection.
func BenchmarkHandler(b *testing.B) {
	source := sourceTo("billing", trusting{})
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"verify-only", verifyOnly(trusting{})},
		{"ingest", ingest.New(complete(ingest.Options{Sources: []ingest.Source{source}, Journal: instant{}}))},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := strings.Repeat("x", 2048)
			r := request("billing", body)
			for name, value := range map[string]string{"User-Agent": "Bench/1.0", "Accept": "*/*", "Accept-Encoding": "gzip", "X-Request-Id": "0123456789abcdef"} {
				r.Header.Set(name, value)
			}
			content := bytes.NewReader(nil)
			r.Body = io.NopCloser(content)
			b.ReportAllocs()
			for b.Loop() {
				content.Reset([]byte(body))
				w := &discard{header: http.Header{}}
				c.handler.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkServer compares the two over loopback connections, generator included.
func BenchmarkServer(b *testing.B) {
	source := sourceTo("billing", trusting{})
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"verify-only", verifyOnly(trusting{})},
		{"ingest", ingest.New(complete(ingest.Options{Sources: []ingest.Source{source}, Journal: instant{}}))},
	} {
		b.Run(c.name, func(b *testing.B) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			transport := &http.Transport{MaxIdleConnsPerHost: 64}
			defer transport.CloseIdleConnections()
			body := strings.Repeat("x", 2048)
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequest(http.MethodPost, server.URL+"/in/billing", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					resp, err := transport.RoundTrip(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		})
	}
}

// BenchmarkForwarded compares an event that comes to its owner with one that another cell hands on to it, over a loopback
// connection without TLS.
func BenchmarkForwarded(b *testing.B) {
	owner, near := twoCells(b, func(c *cells.Cells) *ingest.Handler {
		return ingest.New(complete(ingest.Options{Sources: []ingest.Source{sourceTo("billing", trusting{})}, Journal: instant{}, Cells: c}))
	}, nil, nil, nil)
	for _, door := range []struct {
		name    string
		handler http.Handler
	}{{"own", owner}, {"forwarded", near}} {
		b.Run(door.name, func(b *testing.B) {
			body := []byte(strings.Repeat("x", 2048))
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := request("billing", string(body))
				for name, value := range map[string]string{"User-Agent": "Bench/1.0", "Accept": "*/*", "Accept-Encoding": "gzip", "X-Request-Id": "0123456789abcdef"} {
					r.Header.Set(name, value)
				}
				content := bytes.NewReader(nil)
				r.Body = io.NopCloser(content)
				for pb.Next() {
					content.Reset(body)
					w := &discard{header: http.Header{}}
					if door.handler.ServeHTTP(w, r); w.status != http.StatusOK {
						b.Error(w.status)
						return
					}
				}
			})
		})
	}
}
