//go:build linux

package loadgen

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/traffic"
)

// Every request that was made is answered and counted exactly once, at full speed and at a rate.
func TestLoadCountsEveryAnswer(t *testing.T) {
	for name, rate := range map[string]float64{"full speed": 0, "rate": 2000} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[uint64]int{}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				seen[binary.BigEndian.Uint64(body)]++
				w.Header().Set("Hookonce-Status", "accepted")
				w.WriteHeader(http.StatusAccepted)
			})
			tg := target(t, s.URL)
			made := uint64(0)
			res, err := Load{
				Target: tg, Conns: 8, Rate: rate, Warmup: 20 * time.Millisecond, Duration: 150 * time.Millisecond,
				Next: func(buf []byte) []byte {
					if buf == nil {
						buf = tg.Request(nil, make([]byte, 8))
					}
					binary.BigEndian.PutUint64(buf[len(buf)-8:], made)
					made++
					return buf
				},
			}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if res.Total != made || res.Statuses[http.StatusAccepted] != made || res.Verdicts["accepted"] != made || uint64(len(seen)) != made {
				t.Errorf("made %d, seen %d, result %+v", made, len(seen), res)
			}
			if res.Answers == 0 || res.Answers > res.Total || res.Latency.Max == 0 || res.Seconds != .15 {
				t.Errorf("result %+v", res)
			}
			if limit := rate*.17 + 1; rate > 0 && float64(made) > limit {
				t.Errorf("made %d requests, more than %g were due", made, limit)
			}
		})
	}
}

// At a rate, a server that stalls is charged with the wait of every request that became due
// meanwhile, not only of the one that met the stall.
func TestLoadChargesStallsToAllThatWaited(t *testing.T) {
	const stall = 100 * time.Millisecond
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			timer := time.NewTimer(stall)
			<-timer.C
		})
	})
	tg := target(t, s.URL)
	request := tg.Request(nil, []byte("x"))
	res, err := Load{Target: tg, Conns: 1, Rate: 1000, Duration: 200 * time.Millisecond, Next: func([]byte) []byte { return request }}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res.Latency.P90 < stall/4 {
		t.Errorf("a tenth of the requests or more waited, and the 90th percentile is %v", res.Latency.P90)
	}
}

func TestLoadFailures(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })
	tg := target(t, s.URL)
	l := Load{Target: tg, Conns: 2, Duration: time.Second, Next: func([]byte) []byte { return tg.Request(nil, nil) }}
	if _, err := l.Run(t.Context()); err == nil {
		t.Error("connections that are not kept alive pass for a load")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Run(ctx); err == nil {
		t.Error("a cancelled run has a result")
	}
	l.Target = target(t, "https://"+tg.Address())
	if _, err := l.Run(t.Context()); err == nil {
		t.Error("TLS is not supported and not refused")
	}
}

func target(t *testing.T, url string) *traffic.Target {
	t.Helper()
	tg, err := traffic.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}
