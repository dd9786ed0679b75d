package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// A key is found as its sender wrote it and as it is stored. One that looks like a digest is itself first, where both are there.
func TestFoundByTheKeyOfItsSender(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("k", hookonce.MaxKeyLen+100)
	stored := hookonce.NormalKey(long)
	short := func(e *journal.Record) { e.Digest = []byte("content") }
	id, twice := r.accept(stored, journal.Done, short), r.accept(hookonce.NormalKey(stored), journal.Done, short)
	for key, want := range map[string]int64{long: id, stored: id, hookonce.NormalKey(stored): twice} {
		if got := r.get("/api/v1/events/billing/" + key)["id"]; got != strconv.FormatInt(want, 10) {
			t.Errorf("%.20s...: event %v, want %d", key, got, want)
		}
	}
	r.expect(request(http.MethodGet, "/api/v1/events/billing/"+long+"x", nil), http.StatusNotFound)
}
