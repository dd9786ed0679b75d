package deliver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// endless is a journal that always has work and forgets what became of it.
type endless struct {
	work     chan *journal.Work
	finished chan journal.State
}

func (e *endless) Work() <-chan *journal.Work     { return e.work }
func (e *endless) Current(journal.Held) bool      { return true }
func (e *endless) Suspend(string, time.Time)      {}
func (e *endless) Finish(outcome journal.Outcome) { e.finished <- outcome.State }

// benchmarkWork is a delivery of the size that is common.
func benchmarkWork() *journal.Work {
	header := "Content-Type: application/json\r\nUser-Agent: Provider/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n" +
		"X-Request-Id: 0123456789abcdef\r\nX-Provider-Signature: t=1700000000,v1=" + strings.Repeat("ab", 32) + "\r\n"
	return &journal.Work{
		Held:   journal.Held{EventID: 1, Destination: "app", Token: 1},
		Source: "billing", Key: "evt_1", Type: "invoice.paid", Tries: 1,
		Header: []byte(header), Body: []byte(strings.Repeat("x", 2048)),
	}
}

// BenchmarkDeliver measures one delivery: over a transport that answers at once, which is what is ours
// of the cost, and over loopback connections to a server in the same process.
func BenchmarkDeliver(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer app.Close()
	for _, c := range []struct {
		name      string
		transport http.RoundTripper
	}{
		{"ours", transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})},
		{"loopback", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			j := &endless{make(chan *journal.Work, 64), make(chan journal.State, 64)}
			d, err := deliver.New(deliver.Options{
				Journal: j, Destinations: map[string]deliver.Destination{"app": {URL: app.URL}},
				Transport: c.transport, Concurrency: 32,
			})
			if err != nil {
				b.Fatal(err)
			}
			d.Start()
			w := benchmarkWork()
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for range b.N {
					j.work <- w
				}
			}()
			for range b.N {
				if state := <-j.finished; state != journal.Done {
					b.Fatal(state)
				}
			}
			b.StopTimer()
			if err := d.Stop(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkTransport is the floor under the loopback figure: the same exchange by net/http alone.
func BenchmarkTransport(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer app.Close()
	plain := &http.Transport{MaxIdleConnsPerHost: 64}
	defer plain.CloseIdleConnections()
	body := strings.Repeat("x", 2048)
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest(http.MethodPost, app.URL, strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			resp, err := plain.RoundTrip(r)
			if err != nil {
				b.Error(err)
				return
			}
			_ = resp.Body.Close()
		}
	})
}
