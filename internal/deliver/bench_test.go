package deliver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// endless is a journal that always has work and forgets what became of it.
type endless struct {
	work     chan *journal.Work
	finished chan journal.State
}

func (e *endless) Work() <-chan *journal.Work     { return e.work }
func (e *endless) Paused(string) bool             { return false }
func (e *endless) Current(journal.Held) bool      { return true }
func (e *endless) Suspend(string, journal.Rest)   {}
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
// of the cost, without a signature and with one, and over loopback connections to a server in the same process.
func BenchmarkDeliver(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer app.Close()
	atOnce := transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	for _, c := range []struct {
		name      string
		transport http.RoundTripper
		secrets   []string
	}{
		{"ours", atOnce, nil},
		{"signed", atOnce, []string{"whsec_YSBmYWtlIHNlY3JldCBvZiB0aGUgc2hvcA=="}},
		{"loopback", nil, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			j := &endless{make(chan *journal.Work, 64), make(chan journal.State, 64)}
			d, err := options{
				Options:   deliver.Options{Journal: j, Destinations: map[string]deliver.Destination{"app": {URL: app.URL, Concurrency: 32, Secrets: c.secrets}}},
				transport: c.transport,
			}.open()
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

// BenchmarkHangingDestinations measures what ninety-five destinations get while five others hang, against
// what they get when none does. Of those that hang the journal holds back what is beyond its bound.
func BenchmarkHangingDestinations(b *testing.B) {
	const destinations, bound = 100, 128
	for _, hanging := range []int{0, 5} {
		b.Run(strconv.Itoa(hanging), func(b *testing.B) {
			settings := map[string]deliver.Destination{}
			work := make([]*journal.Work, destinations)
			for i := range destinations {
				name := "app-" + strconv.Itoa(i)
				settings[name] = deliver.Destination{URL: "http://" + name + ".invalid/"}
				work[i] = benchmarkWork()
				work[i].Destination = name
			}
			ill := map[string]bool{}
			for _, w := range work[:hanging] {
				ill[w.Destination+".invalid"] = true
			}
			j := &endless{make(chan *journal.Work, 64), make(chan journal.State, 64)}
			d, err := options{Options: deliver.Options{Journal: j, Destinations: settings}, transport: transport(func(r *http.Request) (*http.Response, error) {
				if ill[r.URL.Host] {
					return hang(r)
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})}.open()
			if err != nil {
				b.Fatal(err)
			}
			d.Start()
			for i := range hanging * bound {
				j.work <- work[i%hanging]
			}
			b.ResetTimer()
			go func() {
				for i := range b.N {
					j.work <- work[hanging+i%(destinations-hanging)]
				}
			}()
			for done := 0; done < b.N; {
				if <-j.finished == journal.Done {
					done++
				}
			}
			b.StopTimer()
			stop(b, d, j)
		})
	}
}

// stop cuts off what hangs.
func stop(b *testing.B, d *deliver.Deliverer, j *endless) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Stop(ctx)
	}()
	for {
		select {
		case <-j.finished:
		case <-stopped:
			return
		}
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
