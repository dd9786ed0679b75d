package ingest_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
)

// What is beyond the rate is refused before its body is read, with the time after which the next one is
// taken, and in a way that the provider retries.
func TestRate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := newGate(t, func(o *ingest.Options) {
		o.Now = func() time.Time { return now }
		o.Sources[0].Rate, o.Sources[0].Burst = 0.4, 2
	})
	status := func(source string) int { return g.send(source, `{"id":"a"}`).Code }
	if a, b := status("billing"), status("billing"); a != http.StatusOK || b != http.StatusOK {
		t.Fatalf("the burst was answered %d and %d", a, b)
	}
	for range 3 { // refusals cost nothing
		r := request("billing", `{"id":"a"}`)
		r.Body = unreadable{t}
		w := serve(g, r)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "rate")
		if again := w.Header().Get("Retry-After"); again != "3" { // 2.5 s
			t.Errorf("Retry-After = %q, want 3", again)
		}
	}
	if code := status("orders"); code != http.StatusOK {
		t.Errorf("another source was answered %d", code)
	}
	now = now.Add(2500 * time.Millisecond)
	if a, b := status("billing"), status("billing"); a != http.StatusOK || b != http.StatusServiceUnavailable {
		t.Errorf("2.5 s later the answers were %d and %d, want 200 and 503", a, b)
	}
	if n := gather(t, g, "hookonce_rejected_total")["rate,billing"]; n != 4 {
		t.Errorf("%v refusals are counted, want 4", n)
	}
}

// unreadable is a body that nobody may read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unreadable")
}

func (unreadable) Close() error { return nil }

// tolerant is a provider that retries after 429.
type tolerant struct{ testProvider }

func (tolerant) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "test", NotReady: http.StatusTooManyRequests}
}

func TestRateInTheProvidersWay(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Sources[0].Provider = tolerant{}
		o.Sources[0].Rate, o.Sources[0].Burst = 0.001, 1
	})
	g.send("billing", `{"id":"a"}`)
	w := g.send("billing", `{"id":"a"}`)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d, Retry-After %q; want 429 with a time", w.Code, w.Header().Get("Retry-After"))
	}
}

// Twice the rate may come at once where nothing else is said, and at least one.
func TestBurstFollowsRate(t *testing.T) {
	for perSecond, burst := range map[float64]int{3: 6, 0.3: 1, 0.75: 2} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		g := newGate(t, func(o *ingest.Options) {
			o.Now = func() time.Time { return now }
			o.Sources[0].Rate = perSecond
		})
		taken := 0
		for g.send("billing", `{"id":"a"}`).Code == http.StatusOK {
			taken++
		}
		if taken != burst {
			t.Errorf("%v per second: %d at once, want %d", perSecond, taken, burst)
		}
	}
}
