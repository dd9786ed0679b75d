package api_test

import (
	"fmt"
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

// A key is found whatever its source, also of sources that are not configured, and of several all
// are listed, newest first.
func TestFoundByTheKeyAlone(t *testing.T) {
	r := newRig(t)
	of := func(source string) func(*journal.Record) {
		return func(e *journal.Record) { e.Source, e.Digest = source, []byte("content") }
	}
	long := strings.Repeat("k", hookonce.MaxKeyLen+100)
	r.accept("evt/1", journal.Done, of("renamed"))
	r.accept("evt/1", journal.Dead)
	r.accept(hookonce.NormalKey(long), journal.Done, of("gone"))
	for key, want := range map[string]string{"evt%2F1": "[billing dead renamed done]", long: "[gone done]"} {
		var got []string
		for _, e := range r.get("/api/v1/keys/" + key)["events"].([]any) {
			event := e.(map[string]any)
			got = append(got, event["source"].(string), event["state"].(string))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%.20s...: %v, want %s", key, got, want)
		}
	}
	for _, key := range []string{"evt", "%2E%2E", "evt%00"} {
		r.expect(request(http.MethodGet, "/api/v1/keys/"+key, nil), http.StatusNotFound)
	}
}
