package hookoncetest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// sender behaves like a provider, or like a client that retries: it sends an event again until it is
// acknowledged, or answered what is final for that sender.
type sender struct {
	settings
	t       testing.TB
	handler http.Handler
	request func(e *event, delivery int) (*http.Request, error)
	keyOf   func(*event) (string, error)
	same    bool   // all acknowledgements of an event must be the same
	prefix  string // of ids
	// numberedID returns an id that is a number, for a sender whose ids are numbers. Nil: there is none.
	numberedID func(uint64) string
	// drops reports whether the sender gives up an event that is answered so, and provider is its name. Nil: it never does.
	drops    func(status int) bool
	provider string
	seed     uint32 // in ids
	events   []*event
	steps    int // of the handler that were seen
}

func newSender(t testing.TB, h http.Handler, prefix string, opts []Option) *sender {
	t.Helper()
	if h == nil {
		t.Fatalf("hookoncetest: a storm needs a handler")
	}
	return &sender{settings: newSettings(t, opts), t: t, handler: h, prefix: prefix, seed: rand.Uint32()}
}

// event is one thing that is sent, and what came of its deliveries.
type event struct {
	id, key string
	n       int    // among the events of the storm, from 1
	kind    string // of what the sender did
	round   string // what it did, for people

	sent    atomic.Int32   // deliveries
	running sync.WaitGroup // handlers, also those whose sender hung up

	mu      sync.Mutex
	answers []answer // in the order of arrival
}

// answer is what a delivery came to.
type answer struct {
	status    int    // 0: none came
	why       string // none came
	body      string
	disturbed bool // the context ended before the handler did
	final     bool // the sender gives the event up
}

func (a answer) String() string {
	if a.status == 0 {
		return a.why
	}
	return fmt.Sprint(a.status)
}

func (a answer) acknowledges() bool { return a.status/100 == 2 }

// send makes one delivery, and returns its answer when that is there or the sender has hung up.
func (s *sender) send(e *event, c conditions) answer {
	r, err := s.request(e, int(e.sent.Add(1)))
	if err != nil {
		return e.note(answer{why: "not sent: " + err.Error()})
	}
	m := newCancelPoints(r.Context(), c)
	answered := make(chan answer, 1)
	e.running.Go(func() {
		defer m.cancel() // as net/http does
		s.serve(r.WithContext(m), answered)
	})
	var gone <-chan struct{}
	if c.hangUp {
		gone = m.Context.Done()
	}
	var a answer
	select {
	case a = <-answered:
	case <-gone:
		if !m.ended.Load() {
			a = <-answered
		}
	}
	if a.disturbed = m.ended.Load(); a.disturbed && c.hangUp {
		a.status, a.why = 0, "hung up"
	}
	a.final = !a.disturbed && s.drops != nil && s.drops(a.status)
	return e.note(a)
}

// serve runs the handler, and reports what the sender sees, however the handler ends.
func (s *sender) serve(r *http.Request, answered chan<- answer) {
	w := httptest.NewRecorder()
	a := answer{why: "the handler ended its goroutine"}
	defer func() {
		if p := recover(); p != nil {
			a = answer{why: fmt.Sprintf("the handler panicked: %v", p)}
		}
		answered <- a
	}()
	s.handler.ServeHTTP(w, r)
	a = answer{status: w.Code, body: w.Body.String()}
}

// together sends copies under one condition, all at the same moment, and returns when all are answered.
func (s *sender) together(e *event, copies int, c conditions) {
	start := make(chan struct{})
	var senders sync.WaitGroup
	for range copies {
		senders.Go(func() {
			<-start
			s.send(e, c)
		})
	}
	close(start)
	senders.Wait()
}

// persist sends the event until the sender is through with it, and returns when all handlers have.
func (s *sender) persist(e *event) {
	for range s.attempts {
		e.running.Wait()
		if e.acknowledged() || e.dropped() != 0 {
			return
		}
		s.send(e, conditions{})
	}
	e.running.Wait()
}

// repeat sends the event once more than is needed, as a sender that lost the acknowledgement does.
func (s *sender) repeat(e *event) {
	s.persist(e)
	if e.acknowledged() {
		s.send(e, conditions{})
	}
}

// note keeps an answer.
func (e *event) note(a answer) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, a)
	return a
}

// acknowledged reports whether the sender knows that it may forget the event.
func (e *event) acknowledged() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.answers {
		if a.acknowledges() {
			return true
		}
	}
	return false
}

// dropped returns the first status for which the sender gave the event up; 0: it did not.
func (e *event) dropped() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.answers {
		if a.final {
			return a.status
		}
	}
	return 0
}

// differs reports whether two acknowledgements were not the same.
func (e *event) differs() bool {
	var first *answer
	for i := range e.answers {
		a := &e.answers[i]
		switch {
		case !a.acknowledges():
		case first == nil:
			first = a
		case a.status != first.status || a.body != first.body:
			return true
		}
	}
	return false
}

// story tells what the deliveries were answered, in order.
func (e *event) story() string {
	var parts []string
	for i, n := 0, 1; i < len(e.answers); i, n = i+n, 1 {
		text := e.answers[i].String()
		for i+n < len(e.answers) && e.answers[i+n].String() == text {
			n++
		}
		parts = append(parts, times(text, n))
	}
	return "answered " + strings.Join(parts, ", ")
}

func times(text string, n int) string {
	if n == 1 {
		return text
	}
	return fmt.Sprintf("%s (%d times)", text, n)
}
