package traffic

import "testing"

func TestEventIDs(t *testing.T) {
	seen := map[string]bool{}
	for n := range 100_000 {
		id := EventID(7, n)
		if seen[id] || len(id) != len(EventID(8, 0)) {
			t.Fatalf("id %d, %s, is there twice or of another length", n, id)
		}
		seen[id] = true
	}
	if EventID(7, 3) == EventID(8, 3) {
		t.Error("the ids of two seeds are the same")
	}
	// A seed must give the same ids for ever: people write seeds into reports.
	if got := EventID(7, 3); got != "evt_f53a29a2695577c0" {
		t.Errorf("the id is %s now", got)
	}
}
