//go:build unix

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
)

// BenchmarkCells accepts events in rounds that follow each other, so that all ways meet the same moments of a machine: by a
// gateway without cells, by one whose cell owns all, and by two equal cells at random doors. It reports medians: events a second,
// and the CPU time of this process for an event, the sender's included and Postgres's not.
//
//	go test ./internal/gateway -run '^$' -bench BenchmarkCells -benchtime 7x
func BenchmarkCells(b *testing.B) {
	const events, senders = 2000, 16
	ways := []string{"without", "own", "divided"}
	doors := map[string][]*Gateway{}
	sources := map[string]config.Source{}
	plain := configured(config.Store{Driver: config.Postgres, DSN: newCellWorld(b, "http://127.0.0.1:1/", 1).cells[0].dsn}, "")
	plain.Sources[0].To = ""
	g, err := Start(b.Context(), plain, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(b.Context())
	doors["without"], sources["without"] = []*Gateway{g}, plain.Sources[0]
	for way, weights := range map[string][]int{"own": {1}, "divided": {1, 1}} {
		w := newCellWorld(b, "", weights...)
		w.sources = "\n- {name: orders, provider: hmac, secrets: [\"secret-of-orders\"], routes: [{to: [none], types: [never]}]}\ndestinations: [{name: none, url: \"http://127.0.0.1:1/\"}]\n"
		w.startAll()
		numbers := make([]*testCell, len(w.cells))
		copy(numbers, w.cells)
		w.awaitMap(int64(w.number), numbers...)
		for _, c := range w.cells {
			doors[way] = append(doors[way], c.gateway)
		}
		sources[way] = w.cells[0].gateway.config().Sources[0]
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var next atomic.Int64
	rate, cost := map[string][]float64{}, map[string][]float64{}
	for range b.N {
		for _, way := range ways {
			began, before := time.Now(), spent()
			var group sync.WaitGroup
			for range senders {
				group.Go(func() {
					s := sources[way]
					p, _ := s.NewProvider()
					for range events / senders {
						n := next.Add(1)
						body := event(fmt.Sprint("evt-", n))
						r, err := postSigned(client, doors[way][int(n)%len(doors[way])], "orders", signedBy(p, body), body)
						if err != nil || r.status != http.StatusOK {
							b.Errorf("%s: %+v, %v", way, r, err)
							return
						}
					}
				})
			}
			group.Wait()
			rate[way] = append(rate[way], events/time.Since(began).Seconds())
			cost[way] = append(cost[way], float64((spent()-before).Microseconds())/events)
		}
	}
	for _, way := range ways {
		slices.Sort(rate[way])
		slices.Sort(cost[way])
		b.ReportMetric(rate[way][len(rate[way])/2], way+"/s")
		b.ReportMetric(cost[way][len(cost[way])/2], way+"-us-CPU")
	}
}

// spent is the CPU time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// signedBy returns the headers of a body that a sender has signed.
func signedBy(p interface {
	Sign(*hookonce.Request) error
}, body []byte) http.Header {
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: time.Now()}
	_ = p.Sign(r) // what is not signed is refused
	return r.Header
}
