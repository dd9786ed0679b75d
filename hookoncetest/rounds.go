package hookoncetest

import (
	"sync"
	"time"
)

const (
	// maxSteps bounds how many steps of a handler are disturbed.
	maxSteps = 64
	// parts is at how many times of a handler it is disturbed besides: where it works under a context that was
	// derived from the request's, its steps are not seen.
	parts = 32
)

// happyPath sends copies one after the other, and returns how long the first took.
func (s *sender) happyPath() (*event, time.Duration) {
	s.t.Helper()
	e := s.begin("copies one after the other")
	start := time.Now()
	s.send(e, conditions{})
	took := time.Since(start)
	s.repeat(e)
	return e, took
}

// burst sends many copies of an event at one moment, with pauses between the steps of each, so that they
// overtake each other differently; and spread over the time that one takes, and over twice that.
func (s *sender) burst(took time.Duration) {
	s.t.Helper()
	for _, pause := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond} {
		e := s.begin("%d copies at one moment", s.copies)
		s.together(e, s.copies, conditions{pause: pause})
		s.repeat(e)
	}
	for _, span := range []time.Duration{took, 2 * took} {
		e := s.begin("%d copies, each before the former are done", s.copies)
		s.spread(e, span)
		s.repeat(e)
	}
}

// spread sends copies at equal distances.
func (s *sender) spread(e *event, span time.Duration) {
	var senders sync.WaitGroup
	for i := range s.copies {
		begin := time.After(span * time.Duration(i) / time.Duration(s.copies))
		senders.Go(func() {
			<-begin
			s.send(e, conditions{})
		})
	}
	senders.Wait()
}

// hangUps has senders hang up at each step of the handler, and at several times.
func (s *sender) hangUps(took time.Duration) {
	s.t.Helper()
	for step, reached := 1, true; reached && step <= maxSteps; step++ {
		e := s.begin("the sender hangs up at step %d of the handler, and sends again", step)
		reached = s.hangUp(e, conditions{cancelAt: step})
	}
	for i := range parts {
		after := part(took, i)
		e := s.begin("the sender hangs up after %v, and sends again", after)
		s.hangUp(e, conditions{after: after})
	}
}

// part returns the ith of the times at which what takes so long is disturbed.
func part(took time.Duration, i int) time.Duration {
	return max(took*time.Duration(i)/parts, time.Nanosecond)
}

// hangUp sends an event, hangs up, and sends two copies while the handler may still be at work. It reports
// whether the handler was at work when the sender hung up.
func (s *sender) hangUp(e *event, c conditions) bool {
	c.hangUp = true
	disturbed := s.send(e, c).disturbed
	if e.dropped() == 0 {
		s.together(e, 2, conditions{})
	}
	s.persist(e)
	return disturbed
}

// endings has the server end the request's context at each step of the handler, and at several times: the
// sender is there, and believes what it is answered.
func (s *sender) endings(took time.Duration) {
	s.t.Helper()
	end := func(e *event, c conditions) bool {
		disturbed := s.send(e, c).disturbed
		s.persist(e)
		return disturbed
	}
	for step, reached := 1, true; reached && step <= maxSteps; step++ {
		e := s.begin("the request's context ends at step %d of the handler", step)
		if reached = end(e, conditions{cancelAt: step}); reached {
			s.steps = step
		}
	}
	for i := range parts {
		after := part(took, i)
		end(s.begin("the request's context ends after %v", after), conditions{after: after})
	}
}

// failures has the handler's work fail: twice in a row, and in all copies at once.
func (s *sender) failures() {
	s.t.Helper()
	e := s.begin("the work fails twice")
	if a := s.send(e, conditions{failing: true}); !a.acknowledges() && !a.final {
		s.send(e, conditions{failing: true})
	}
	s.persist(e)

	e = s.begin("the work fails for %d copies at one moment", s.copies)
	s.together(e, s.copies, conditions{failing: true, pause: 4 * time.Millisecond})
	s.persist(e)
}
