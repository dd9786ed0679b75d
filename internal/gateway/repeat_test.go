package gateway

import (
	"net/http"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// What an event means whose key is known is the sender's to say.
func TestRepeats(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	const first, other = `{"id":"a","state":"open"}`, `{"id":"a","state":"closed"}`
	for repeat, verdicts := range map[spec.Repeat][3]string{ // of the first, its copy, and the other
		spec.Drop:       {"accepted", "duplicate", "conflict"},
		spec.KeepLatest: {"accepted", "duplicate", "accepted"},
		spec.Coalesce:   {"accepted", "accepted", "accepted"}, // each came after the one before it had begun
		spec.Off:        {"unkeyed", "unkeyed", "unkeyed"},
	} {
		t.Run(string(repeat), func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, store config.Store) {
				app := newSink(t)
				s := repeating(app.URL, repeat)
				cfg := configured(store, app.URL)
				cfg.Sources = []config.Source{s}
				g, c := start(t, cfg), client(t)
				delivered := 0
				for i, body := range []string{first, first, other} {
					r, err := post(t, c, g, s, []byte(body))
					if err != nil || r.status != http.StatusOK || r.verdict != verdicts[i] {
						t.Fatalf("%s: answered %+v, %v; want %s", body, r, err, verdicts[i])
					}
					if r.verdict == "accepted" || r.verdict == "unkeyed" {
						delivered++
					}
					app.await(t, "the delivery", func() bool { return app.total >= delivered })
				}
				closeNow(t, g) // nothing more comes
				if app.total != delivered || len(app.keys["a"]) != delivered {
					t.Errorf("%d deliveries under %d keys, want %d under as many", app.total, len(app.keys["a"]), delivered)
				}
			})
		})
	}
}

// repeating is a source whose sender means that by repeating a key.
func repeating(to string, repeat spec.Repeat) config.Source {
	s := source("crm", to)
	s.Provider = "custom"
	s.Spec = &spec.Spec{
		Name:   "our-crm",
		Verify: []spec.Verify{{Signature: spec.Signature{In: "header:X-Signature"}, Sign: []spec.Value{"body"}}},
		Dedup:  spec.Dedup{OnRepeat: repeat},
	}
	if repeat != spec.Off {
		s.Spec.Event.Key = [][]spec.Value{{"json:$.id"}}
	}
	return s
}
