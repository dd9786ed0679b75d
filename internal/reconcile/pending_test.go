package reconcile

import (
	"context"
	"testing"

	"github.com/hookonce/hookonce"
)

// Bodies that wait for the second look are counted against their bound, also those that a later entry has and an earlier one had
// not; those of events that turn out to be on record are not.
func TestBodiesAreCounted(t *testing.T) {
	r := &run{
		opts:    &Options{Ingest: func(context.Context, hookonce.Event) (bool, error) { return true, nil }},
		report:  &Report{},
		pending: map[string]*pending{}, decided: map[sum]struct{}{},
	}
	body := make([]byte, 100)
	cut, whole := &Entry{ID: "1"}, &Entry{ID: "2", Whole: true}
	for _, key := range []string{"evt_missing", "evt_known"} {
		r.take(cut, hookonce.Event{Key: key})
	}
	known := map[string]Known{"evt_known": {}}
	r.firstLook(r.pending["evt_missing"], known)
	for range 2 {
		r.take(whole, hookonce.Event{Key: "evt_missing", Body: body})
		r.take(whole, hookonce.Event{Key: "evt_known", Body: body})
	}
	if r.bytes != 200 {
		t.Errorf("%d bytes of bodies are counted, and 200 are kept", r.bytes)
	}
	r.firstLook(r.pending["evt_known"], known)
	if r.bytes != 100 {
		t.Errorf("%d bytes of bodies are counted, and 100 are kept", r.bytes)
	}
}
