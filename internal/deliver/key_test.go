package deliver

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

func work(source, key string, id int64) *journal.Work {
	return &journal.Work{Held: journal.Held{EventID: id, Destination: "app", Token: 1}, Source: source, Key: key, Tries: 1}
}

func TestIdempotencyKey(t *testing.T) {
	for _, c := range []struct {
		name string
		work *journal.Work
		want string
	}{
		{"plain", work("billing", "evt_1", 7), "billing:evt_1"},
		{"unkeyed", work("billing", "", 7), "billing#7"},
		{"taken over by the next", work("billing", journal.CoalesceKey("account"), 7), "billing#7"},
		{"joined parts", work("billing", hookonce.JoinKey("ab", "c"), 7), "billing:2:ab1:c"},
		{"not ASCII", work("billing", "é", 7), "billing:%C3%A9"},
		{"space and percent", work("billing", "a b%", 7), "billing:a%20b%25"},
		{"a source with the separators", work("a:b#c", "d", 7), "a%3Ab%23c:d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := idempotencyKey(c.work); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzIdempotencyKey: two events have the same key only when they are the same event, and every key
// can be sent.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("a", "b", int64(1), "a", "b", int64(2))
	f.Add("a", "", int64(1), "a", "1", int64(1))
	f.Add("a:b", "c", int64(1), "a", "b:c", int64(1))
	f.Add("a", journal.CoalesceKey("b"), int64(1), "a", journal.CoalesceKey("b"), int64(2))
	f.Add("a", journal.CoalesceKey("b"), int64(1), "a", "", int64(1)) // its key was taken over
	f.Add("a#1", "", int64(1), "a", "", int64(11))
	f.Add("a", "#1", int64(1), "a", "", int64(1))
	f.Add("a%", "b", int64(1), "a", "%25b", int64(1))
	f.Add("a", strings.Repeat("é", 120), int64(1), "a", strings.Repeat("é", 120)+"x", int64(1))
	f.Fuzz(func(t *testing.T, source1, key1 string, id1 int64, source2, key2 string, id2 int64) {
		for _, r := range []hookonce.Ref{{Source: source1, Key: key1}, {Source: source2, Key: key2}} {
			if r.Validate() != nil {
				return // no store would have it
			}
		}
		a, b := idempotencyKey(work(source1, key1, id1)), idempotencyKey(work(source2, key2, id2))
		shared := key1 != "" && !journal.Coalesces(key1) // otherwise the id counts, and the key does not
		alike := key1 == key2 || !shared && (key2 == "" || journal.Coalesces(key2))
		same := source1 == source2 && alike && (shared || id1 == id2)
		if same != (a == b) {
			t.Fatalf("%q and %q for (%q, %q, %d) and (%q, %q, %d)", a, b, source1, key1, id1, source2, key2, id2)
		}
		if a == "" || len(a) > maxIdempotencyKey || strings.IndexFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
			t.Fatalf("key %q cannot be sent", a)
		}
	})
}
