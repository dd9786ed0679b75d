package hookoncetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Report is what came of a storm.
type Report struct {
	events   []*event
	steps    int    // of the handler that were seen
	same     bool   // all acknowledgements of an event must be the same
	provider string // whose events they are; empty: nobody's
}

// maxAlike is how many events of one kind of round a test's failure tells of.
const maxAlike = 2

// Once fails the test unless every event of the storm took effect once, and its sender knows. Count
// returns how often the event with that key took effect; the key is the one that the provider's events
// have in [hookonce.Event], for most of them the id that they carry.
//
// A failure tells what the sender did and what it was answered: an event that happened more than once; one
// that was acknowledged and never happened, which is lost; one that was answered what is final for its provider
// (see [Storm]), which is lost as well unless it happened; and one that was never acknowledged, which the provider
// sends again and again until it disables the endpoint.
func (r *Report) Once(t testing.TB, count func(key string) int) {
	t.Helper()
	wrong, told := 0, map[string]int{}
	var b strings.Builder
	for _, e := range r.events {
		fault := r.judge(e, count(e.key))
		if fault == "" {
			continue
		}
		wrong++
		if told[e.kind]++; told[e.kind] <= maxAlike {
			fmt.Fprintf(&b, "\n%s %s: %s: %s", e.key, fault, e.round, e.story())
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d events went wrong, such as:%s", wrong, len(r.events), b.String())
	}
}

// judge returns what is wrong with an event that happened n times, or nothing.
func (r *Report) judge(e *event, n int) string {
	switch acknowledged, dropped := e.acknowledged(), e.dropped(); {
	case n > 1:
		return fmt.Sprintf("happened %d times", n)
	case n < 1 && acknowledged:
		return "was acknowledged and never happened"
	case n < 1 && dropped != 0:
		return fmt.Sprintf("was answered %d, which is final for %s: the event is lost", dropped, r.provider)
	case n < 1:
		return "never happened, and was never acknowledged"
	case !acknowledged && dropped != 0:
		return fmt.Sprintf("happened, but was answered %d, which is final for %s", dropped, r.provider)
	case !acknowledged:
		return "happened, but was never acknowledged"
	case r.same && e.differs():
		return "was answered in different ways"
	}
	return ""
}

// String says how much was sent, how many steps of the handler were seen (see [Storm]), and what was answered,
// for logs.
func (r *Report) String() string {
	counts := map[string]int{}
	deliveries := 0
	for _, e := range r.events {
		deliveries += len(e.answers)
		for _, a := range e.answers {
			counts[a.String()]++
		}
	}
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, times(text, counts[text]))
	}
	return fmt.Sprintf("%d events, %d deliveries, %d steps of the handler: answered %s", len(r.events), deliveries, r.steps, strings.Join(parts, ", "))
}
