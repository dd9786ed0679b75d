package hookoncetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestContextsEnd: at the moment or after the time that the conditions say, for whoever asks in whatever way.
func TestContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCancelPoints(t.Context(), conditions{cancelAt: 3})
		child, cancel := context.WithTimeout(m, time.Hour) // looks
		defer cancel()
		for m.looks.Load() < 2 {
			if err := m.Err(); err != nil {
				t.Fatalf("after %d looks: %v", m.looks.Load(), err)
			}
		}
		if err := m.Err(); !errors.Is(err, context.Canceled) || child.Err() == nil || !m.ended.Load() {
			t.Errorf("at the third look: %v, %v", err, child.Err())
		}

		start := time.Now()
		m = newCancelPoints(t.Context(), conditions{after: time.Minute})
		<-m.Done()
		if took := time.Since(start); took != time.Minute || !m.ended.Load() {
			t.Errorf("it ends after %v", took)
		}

		m = newCancelPoints(t.Context(), conditions{cancelAt: 100, after: time.Hour})
		m.cancel() // the handler has returned
		if m.Err() == nil || m.ended.Load() {
			t.Error("the end of the handler passes for a disturbance")
		}
	})
}

// TestFailIsAStep: also below a context that was derived, which answers for itself.
func TestFailIsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCancelPoints(t.Context(), conditions{})
		ctx, cancel := context.WithTimeout(m, time.Hour)
		defer cancel()
		m.cancelAt = int(m.looks.Load()) + 1
		if err := ctx.Err(); err != nil {
			t.Fatalf("before the step: %v", err)
		}
		if err := Fail(ctx); err != nil || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("at the step: %v, and the context says %v", err, ctx.Err())
		}
	})
}

// steady is a sender of one request to h.
func steady(h http.HandlerFunc) *sender {
	return &sender{settings: settings{attempts: 3}, handler: h, request: func(*event, int) (*http.Request, error) {
		return httptest.NewRequest(http.MethodPost, "/", nil), nil
	}}
}

// TestHungUp: who hung up gets no answer, and does not wait for it.
func TestHungUp(t *testing.T) {
	goOn := make(chan struct{})
	s := steady(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		<-goOn // still at work, and answers 200 in the end
	})
	e := &event{}
	if a := s.send(e, conditions{cancelAt: 1, hangUp: true}); a.acknowledges() || !a.disturbed || a.String() != "hung up" {
		t.Errorf("it is answered %v", a)
	}
	close(goOn)
	e.running.Wait()
	if e.acknowledged() {
		t.Error("the answer came all the same")
	}
}

// TestServerEndsTheContext: who is there gets the answer.
func TestServerEndsTheContext(t *testing.T) {
	s := steady(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if a := s.send(&event{}, conditions{cancelAt: 1}); !a.acknowledges() || !a.disturbed {
		t.Errorf("it is answered %v", a)
	}
}

// TestHandlersThatDoNotAnswer: however a handler ends, the sender goes on.
func TestHandlersThatDoNotAnswer(t *testing.T) {
	for want, handle := range map[string]func(){
		"the handler panicked: EOF":       func() { panic(io.EOF) },
		"the handler ended its goroutine": runtime.Goexit,
	} {
		e := &event{}
		s := steady(func(http.ResponseWriter, *http.Request) { handle() })
		s.persist(e)
		if len(e.answers) != 3 || e.answers[0].String() != want {
			t.Errorf("%d answers, the first is %v, not %q", len(e.answers), e.answers[0], want)
		}
	}
}
