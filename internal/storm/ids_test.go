package storm

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
	if EventID(7, 3) != EventID(7, 3) || EventID(7, 3) == EventID(8, 3) {
		t.Error("ids do not follow from the seed alone")
	}
	if got, want := EventID(1, 0), "evt_71c18690ee42c90b"; len(got) != len(want) {
		t.Errorf("got %s", got)
	}
}
