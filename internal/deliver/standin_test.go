package deliver_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// standIn is a journal that brings the work that a test makes up, and notes what it is told. It must be
// created inside a synctest bubble.
type standIn struct {
	*deliver.Deliverer
	work    chan *journal.Work
	metrics *prometheus.Registry

	paused atomic.Bool

	mu        sync.Mutex
	outcomes  []journal.Outcome
	suspended []time.Duration // from the time of the call
	resumed   int
}

func (s *standIn) Work() <-chan *journal.Work { return s.work }
func (s *standIn) Current(journal.Held) bool  { return true }
func (s *standIn) Paused(string) bool         { return s.paused.Load() }

func (s *standIn) Finish(o journal.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes = append(s.outcomes, o)
}

func (s *standIn) Suspend(_ string, r journal.Rest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Until.IsZero() {
		s.resumed++
		return
	}
	s.suspended = append(s.suspended, time.Until(r.Until))
}

// newStandIn starts a deliverer to app on a journal that stands in, and stops it when the test ends.
func newStandIn(t *testing.T, app deliver.Destination, play transport) *standIn {
	t.Helper()
	s := &standIn{work: make(chan *journal.Work), metrics: prometheus.NewRegistry()}
	var err error
	s.Deliverer, err = options{
		Options:   deliver.Options{Journal: s, Destinations: map[string]deliver.Destination{"app": app}, Registerer: s.metrics},
		transport: play,
	}.open()
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		if err := s.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return s
}

// piece is the delivery of an event that was received now.
func piece(id int) *journal.Work {
	return &journal.Work{
		Held:   journal.Held{EventID: int64(id), Destination: "app", Token: 1},
		Source: "billing", Key: fmt.Sprintf("evt_%d", id), Type: "invoice.paid", Tries: 1,
		Header: []byte("Content-Type: application/json\r\n"), Body: []byte("{}"), ReceivedAt: time.Now(),
	}
}

// bring hands work over and waits until nothing happens any more without time passing.
func (s *standIn) bring(pieces ...*journal.Work) {
	for _, w := range pieces {
		s.work <- w
	}
	synctest.Wait()
}

// told returns the outcomes since it was last called.
func (s *standIn) told() []journal.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.outcomes
	s.outcomes = nil
	return told
}

// states counts the outcomes since told was last called.
func (s *standIn) states() map[journal.State]int {
	n := map[journal.State]int{}
	for _, o := range s.told() {
		n[o.State]++
	}
	return n
}

// suspensions returns for how long the destination was suspended, each time since it was last called.
func (s *standIn) suspensions() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.suspended
	s.suspended = nil
	return slices.Clone(told)
}

// breaker returns what the metrics say of how destinations stand.
func (s *standIn) breaker(t *testing.T) (all []float64) {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "hookonce_breaker_state" {
				all = append(all, m.GetGauge().GetValue())
			}
		}
	}
	return all
}

// answers plays a destination that answers with a status that the test may change.
func answers(code *int) transport {
	return func(*http.Request) (*http.Response, error) { return status(*code), nil }
}
