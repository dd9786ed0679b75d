//go:build unix

package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
)

// BenchmarkCells accepts events in rounds that follow each other, so that all ways meet the same moments of a machine: by a
// gateway without cells, by one whose cell owns all, by two equal cells at random doors while keys move, so that for half of
// them the former owner is asked, and by two that have nobody to ask any more: at random doors, and each event at its owner's. It reports medians: events a second,
// and the CPU time of this process for an event, the sender's included and Postgres's not.
//
//	go test ./internal/gateway -run '^$' -bench BenchmarkCells -benchtime 7x
func BenchmarkCells(b *testing.B) {
	events, senders := 2000, 16
	if n, err := strconv.Atoi(os.Getenv("SENDERS")); err == nil {
		senders, events = n, 125*n
	}
	b.Cleanup(TuneGC())
	ways := strings.Fields(cmp.Or(os.Getenv("WAYS"), "without own moving near divided"))
	plain := configured(config.Store{Driver: config.Postgres, DSN: newCellWorld(b, "http://127.0.0.1:1/", 1).cells[0].dsn}, "")
	plain.Sources[0].To = ""
	g, err := Start(b.Context(), plain, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(b.Context())
	source := plain.Sources[0]
	doors := map[string]func(key string, n int) *Gateway{"without": func(string, int) *Gateway { return g }}
	for way, weights := range map[string][]int{"own": {1}, "moving": {1, 1}, "divided": {1, 1}} {
		w := newCellWorld(b, "", weights...)
		w.direct()
		w.sources = "\n- {name: orders, provider: hmac, secrets: [\"secret-of-orders\"], routes: [{to: [none], types: [never]}]}\ndestinations: [{name: none, url: \"http://127.0.0.1:1/\"}]\n"
		w.startAll()
		w.awaitMap(int64(w.number), slices.Clone(w.cells)...)
		doors[way] = func(_ string, n int) *Gateway { return w.cells[n%len(w.cells)].gateway }
		if way == "divided" {
			w.forget()
			doors["near"] = func(key string, _ int) *Gateway { return w.owner("orders", key).gateway }
		}
		source = w.cells[0].gateway.config().Sources[0]
	}
	p, err := source.NewProvider()
	if err != nil {
		b.Fatal(err)
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
					for range events / senders {
						n := next.Add(1)
						key := fmt.Sprint("evt-", n)
						body := event(key)
						r, err := postSigned(client, doors[way](key, int(n)), "orders", signedBy(p, body), body)
						if err != nil || r.status != http.StatusOK {
							b.Errorf("%s: %+v, %v", way, r, err)
							return
						}
					}
				})
			}
			group.Wait()
			rate[way] = append(rate[way], float64(events)/time.Since(began).Seconds())
			cost[way] = append(cost[way], float64((spent()-before).Microseconds())/float64(events))
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
