package hookonce_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// TestIdempotencyKeyDraft goes through draft-ietf-httpapi-idempotency-key-header-07, section by section. It
// has expired without becoming an RFC.
func TestIdempotencyKeyDraft(t *testing.T) {
	for _, c := range []struct {
		section, says string
		check         func(t *testing.T)
	}{
		{"2.1 Syntax", "the key is an item of structured fields that is a string", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge, hookonce.WithStrictKey())
			wantAnswer(t, buy(h, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "10"), 201, "")
			for _, malformed := range []string{"8e03978e", "?1", "1", `("a")`, `"a", "b"`, `'a'`, `"a`} {
				wantAnswer(t, buy(h, malformed, "10"), 400, "idempotency-key-malformed")
			}
			s.want(t, "10")
		}},
		{"2.2 Uniqueness", "a key must not be used again with another payload", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			buy(h, `"a"`, "10")
			wantAnswer(t, buy(h, `"a"`, "11"), 422, "idempotency-key-reused")
			s.want(t, "10")
		}},
		{"2.3 Validity and expiry", "the server may forget keys, and says when", func(t *testing.T) {
			var s till
			store := memstore.New()
			h := counter(store, s.charge)
			buy(h, `"a"`, "10")
			if n, err := store.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 10}); n != 1 || err != nil {
				t.Fatalf("purged %d, %v", n, err)
			}
			wantAnswer(t, buy(h, `"a"`, "11"), 201, "")
			s.want(t, "10", "11")
		}},
		{"2.4 Fingerprint", "a fingerprint of the request tells a copy from another request", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			first := buy(h, `"a"`, "10")
			wantReplay(t, buy(h, `"a"`, "10", setHeader("Date", "Sat, 21 Nov 2026 12:00:00 GMT")), first)
			wantAnswer(t, buy(h, `"a"`, "10 "), 422, "idempotency-key-reused")
		}},
		{"2.5 Responsibilities of the client", "a client that does not know what came of a request sends it again, as it was", func(t *testing.T) {
			var s till
			store := memstore.New()
			cut := store.With(memstore.WithCommit(func(persist func()) error { persist(); return errAway }))
			wantAnswer(t, buy(counter(cut, s.charge), `"a"`, "10"), 503, "unavailable")
			wantAnswer(t, buy(counter(store, s.charge), `"a"`, "10"), 201, "")
			s.want(t, "10")
		}},
		{"2.6 First time request", "it is processed normally", func(t *testing.T) {
			var s till
			w := buy(counter(memstore.New(), s.charge), `"a"`, "10")
			wantAnswer(t, w, 201, "")
			if w.Header().Get("Location") != "/charges/ch_1" || w.Header().Get("Idempotency-Replayed") != "" {
				t.Errorf("header %v", w.Header())
			}
			s.want(t, "10")
		}},
		{"2.6 Duplicate request (retry)", "it gets the result of the completed one, success or error", func(t *testing.T) {
			var s till
			status := http.StatusPaymentRequired
			h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				w.WriteHeader(status)
				return s.charge(w, r, tx)
			})
			first := buy(h, `"a"`, "10")
			wantAnswer(t, first, 402, "")
			status = http.StatusCreated
			wantReplay(t, buy(h, `"a"`, "10"), first)
			first = buy(h, `"b"`, "10")
			wantReplay(t, buy(h, `"b"`, "10"), first)
		}},
		{"2.6 Concurrent request", "it is answered with a conflict while the first is processed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				gate := make(chan struct{})
				h := counter(memstore.New(), heldBack(gate, s.charge))
				first := at(1, `"a"`, "10", h)
				synctest.Wait()
				wantAnswer(t, buy(h, `"a"`, "10"), 409, "request-in-progress")
				close(gate)
				<-first
				s.want(t, "10")
			})
		}},
		{"2.7 Error handling", "400 without a key that is required, 422 for a key used otherwise, 409 while outstanding, each with a link to the documentation", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge, hookonce.WithDocumentation("https://developer.example.com/idempotency"))
			buy(h, `"a"`, "10")
			for title, w := range map[string]*httptest.ResponseRecorder{
				"Idempotency-Key is missing":      buy(h, "", "10"),
				"Idempotency-Key is already used": buy(h, `"a"`, "11"),
			} {
				anchor := map[int]string{400: "idempotency-key-missing", 422: "idempotency-key-reused"}[w.Code]
				if !strings.Contains(w.Body.String(), `"title":"`+title+`"`) || !strings.Contains(w.Body.String(), "https://developer.example.com/idempotency#"+anchor) {
					t.Errorf("%d: %s", w.Code, w.Body)
				}
				if link := w.Header().Get("Link"); link != `<https://developer.example.com/idempotency#`+anchor+`>; rel="describedby"; type="text/html"` {
					t.Errorf("Link %q", link)
				}
			}
		}},
		{"5 Security considerations", "keys are scoped to callers, so that guessing one reveals nothing", func(t *testing.T) {
			TestIdempotentReplayToAnotherPrincipal(t)
		}},
		{"5 Security considerations", "keys that cannot be one are not stored", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			wantAnswer(t, buy(h, strings.Repeat("k", 256), "10"), 400, "idempotency-key-malformed")
			s.want(t)
		}},
	} {
		t.Run(c.section+": "+c.says, c.check)
	}
}
