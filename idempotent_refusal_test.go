package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// A caller who is turned away leaves no row behind, in a transaction and under a lease. A later attempt does, and so
// does one that had reached the outside, or that failed in another way.
func TestIdempotentRefusalLeavesNoRow(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		outside  bool
		want     hookonce.State // empty: no row
	}{
		"401":                  {[]int{401}, false, ""},
		"403":                  {[]int{403}, false, ""},
		"407":                  {[]int{407}, false, ""},
		"twice":                {[]int{403, 403}, false, ""},
		"let in later":         {[]int{403, 201}, false, hookonce.StateDone},
		"after a failure":      {[]int{503, 403}, false, hookonce.StateFailed},
		"425":                  {[]int{425}, false, ""},
		"429":                  {[]int{429}, false, ""},
		"too often, then not":  {[]int{429, 201}, false, hookonce.StateDone},
		"429 after a failure":  {[]int{503, 429}, false, hookonce.StateFailed},
		"429 after a call":     {[]int{429}, true, hookonce.StateFailed},
		"408":                  {[]int{408}, false, hookonce.StateFailed},
		"503":                  {[]int{503}, false, hookonce.StateFailed},
		"404":                  {[]int{404}, false, hookonce.StateDone},
		"after a call outside": {[]int{403}, true, hookonce.StateFailed},
	} {
		for _, door := range []string{"Idempotent", "IdempotentLease"} {
			t.Run(door+" "+name, func(t *testing.T) {
				store := memstore.New()
				var ref hookonce.Ref
				runs := 0
				answer := func(ctx context.Context, w http.ResponseWriter) {
					ref, _ = hookonce.RefFrom(ctx)
					if c.outside {
						hookonce.PinRequest(ctx)
					}
					w.WriteHeader(c.statuses[runs])
					runs++
				}
				h := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(r.Context(), w) }))
				if door == "Idempotent" {
					h = counter(store, func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { answer(r.Context(), w); return nil })
				}
				for i, status := range c.statuses {
					if w := buy(h, "k1", fmt.Sprint(10)); w.Code != status || runs != i+1 {
						t.Errorf("answered %d after %d runs", w.Code, runs)
					}
				}
				claim, err := store.Lookup(t.Context(), ref)
				if c.want == "" && !errors.Is(err, hookonce.ErrNotFound) || c.want != "" && (err != nil || claim.State != c.want) {
					t.Errorf("the claim is %+v, %v; want %q", claim, err, c.want)
				}
			})
		}
	}
}

// A declined request leaves the record of its answer and no trace of a failed attempt.
func TestIdempotentRollbackLeavesNoTrace(t *testing.T) {
	var s till
	var ref hookonce.Ref
	store := memstore.New()
	buy(counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		ref, _ = hookonce.RefFrom(r.Context())
		return s.decline(w, r, tx)
	}), "k1", "10")
	if c, err := store.Lookup(t.Context(), ref); err != nil || c.State != hookonce.StateDone || c.Token != 1 || c.LastError != "" {
		t.Errorf("the claim is %+v, %v", c, err)
	}
}

// full is a store that takes no new key.
type full struct{ *memstore.Store }

func (s full) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	return hookonce.Claim{}, hookonce.RetryAfter(90*time.Second, hookonce.ErrTooManyKeys)
}

func (s full) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	return s.Claim(ctx, req)
}

// A key that the store does not take is told to come again, and that is no failure of ours.
func TestIdempotentTooManyKeys(t *testing.T) {
	var seen []hookonce.Observation
	observe := hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o) })
	runs := 0
	for name, h := range map[string]http.Handler{
		"Idempotent": hookonce.Idempotent(full{memstore.New()}, "counter", func(http.ResponseWriter, *http.Request, *memstore.Tx) error { runs++; return nil },
			hookonce.WithoutScope(), observe),
		"IdempotentLease": hookonce.IdempotentLease(full{memstore.New()}, "counter", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }),
			hookonce.WithoutScope(), observe),
	} {
		seen = nil
		w := buy(h, "k1", "10")
		wantAnswer(t, w, 429, "too-many-keys")
		if w.Header().Get("Retry-After") != "90" || runs != 0 {
			t.Errorf("%s: answered %v after %d runs", name, w.Header(), runs)
		}
		if len(seen) != 1 || seen[0].Status != "rejected" || seen[0].Reason != hookonce.ReasonTooManyKeys {
			t.Errorf("%s: observed %+v", name, seen)
		}
	}
}
