package hookoncetest

import (
	"net/http"
	"testing"
)

// Independent fails the test unless a and b, two endpoints that receive events of one provider, both have the
// effect of an event that is sent to both: first to a and then to b, and another one the other way round. Two
// endpoints that claim under one source fail, because the second takes the event for a copy of what the first
// has done, and acknowledges it: it is lost there. So do two handlers that write to one table of what was
// seen. CountA and countB return how often the event with that key took effect by way of a, and of b; see
// [Report.Once]. They may be one count of both: each delivery has to raise it by one. So one handler given twice
// fails, too, if it recognises copies.
func Independent(t testing.TB, a, b http.Handler, p Signer, countA, countB func(key string) int, opts ...Option) {
	t.Helper()
	s := signer(t, a, p, opts)
	ends := []end{{"the first endpoint", a, countA}, {"the second endpoint", b, countB}}
	for _, order := range [][]end{{ends[0], ends[1]}, {ends[1], ends[0]}} {
		e := s.begin("to %s, and then to %s", order[0].name, order[1].name)
		for i, end := range order {
			s.handler = end.handler
			sent := &event{id: e.id, key: e.key, n: e.n}
			before := end.count(e.key)
			s.persist(sent)
			if fault := (&Report{provider: s.provider}).judge(sent, end.count(e.key)-before); fault != "" {
				t.Errorf("hookoncetest: %s %s at %s, %s: %s", e.key, fault, end.name, turns[i], sent.story())
			}
		}
	}
}

// turns say when an endpoint got an event.
var turns = []string{"which got it first", "after the other had it (does each have a source of its own?)"}

// end is one of two endpoints.
type end struct {
	name    string
	handler http.Handler
	count   func(key string) int
}
